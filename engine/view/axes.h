#pragma once
// The dimensions of a view: the positions that it selects along each, and those that windows slide
// along.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/dataset/dataset.h"
#include "engine/dataset/selection.h"
#include "engine/view/geometry.h"
#include "engine/view/samples/joined_axes.h"

namespace batchfs {

/// Filled while the view is made; immutable and thread-safe from then on.
struct ViewAxes {
  /// Throws with the path of "select" for a dimension or a label that the dataset lacks. A repeated
  /// dimension has the selection of the one that it repeats, unless it is named itself.
  ViewAxes(const Dataset& dataset, const std::vector<std::pair<std::string, Selector>>& select);
  ViewAxes(const ViewAxes&) = delete;
  ViewAxes& operator=(const ViewAxes&) = delete;

  /// The selection along a dimension of the dataset.
  const Positions& along(const std::string& dim) const { return selected.at(dim); }

  std::map<std::string, Positions> selected;  // of every dimension of the dataset
  std::vector<WindowDim> windows;
  mutable JoinedAxes joined{selected};
};

}  // namespace batchfs
