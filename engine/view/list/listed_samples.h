#pragma once
// The part of a view of windows that differs when a file lists its samples.

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/view/batch_plan.h"
#include "engine/view/geometry.h"
#include "engine/view/list/sample_list.h"
#include "engine/view/samples/reach.h"
#include "engine/view/spec.h"

namespace batchfs {

/// The fields of a view of windows. Non-owning.
struct ListingView {
  const Dataset& dataset;
  const std::map<std::string, Positions>& selected;  // by dimension
  const std::vector<WindowDim>& windows;
  const std::vector<Reach>& reaches;  // per window dimension
  /// Positions that offsets and "reserve" add, the least and the most, per window dimension.
  std::vector<std::pair<std::int64_t, std::int64_t>> offsets;
};

/// Reads the list of a view, and its digest into `spec`. Throws invalid_argument and not_supported
/// as read_list(), and for keys that do not go with a list.
std::shared_ptr<const SampleList> listed_samples(ViewSpec& spec, const ListingView& view);

/// The starts that a list has along each window dimension; all positions of a dimension with more
/// than 2^27 of them.
WindowGrid grid_of(const SampleList& list);

/// The tensors of the columns that "labels" names, of `batch_size` samples.
std::vector<TensorSpec> label_tensors(const ViewSpec& spec, const SampleList& list);

/// One line where the list makes another key of the view meaningless.
std::vector<std::string> list_warnings(const ViewSpec& spec);

struct RestrictedList;

/// The numbers of "weights" for each of `samples`, made into draws; digests go into `spec`.
/// `starts_of(sample, starts)` writes where a sample begins; `listed` may be null.
std::shared_ptr<const Draws> sample_draws(
    ViewSpec& spec, const ListingView& view, const RestrictedList* listed, std::int64_t samples,
    const std::function<void(std::int64_t sample, std::int64_t* starts)>& starts_of);

}  // namespace batchfs
