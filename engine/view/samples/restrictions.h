#pragma once
// Which windows of a view are samples, as far as each dimension determines it by itself: "samples"
// in batchfs-view(5).

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/dataset/dataset.h"
#include "engine/dataset/positions.h"
#include "engine/view/geometry.h"
#include "engine/view/samples/mask.h"
#include "engine/view/samples/reach.h"
#include "engine/view/samples/sample_spec.h"
#include "engine/view/samples/time_steps.h"

namespace batchfs {

/// The fields of a view that restrictions read. Non-owning.
struct RestrictedView {
  const Dataset& dataset;
  const SampleSpec& spec;
  const std::map<std::string, Positions>& selected;  // by dimension
  const std::vector<WindowDim>& windows;
  std::vector<Reach> reaches;  // per window dimension
  TimeStepsByDim& times;
};

/// The product of a grid's counts.
std::int64_t count_windows(const WindowGrid& grid);

/// Throws invalid_argument, naming the key, where the view cannot be restricted like this, and
/// where a restriction leaves no window. Costs time and memory of the dimensions' positions, not of
/// the samples.
Dropped restrict_windows(const RestrictedView& view, WindowGrid& grid);

/// One line for each dimension of times that are not evenly spaced, where samples reach over such a
/// gap and the view does not exclude them.
std::vector<std::string> gap_warnings(const RestrictedView& view, const WindowGrid& grid);

}  // namespace batchfs
