#pragma once
// From missing values to the windows that hold them.

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/view/geometry.h"
#include "engine/view/samples/missing_counts.h"
#include "engine/view/samples/sample_index.h"

namespace batchfs {

class Draws;
class SampleList;

/// The inputs for finding the samples of a view that skips missing values.
struct ViewScan {
  std::int64_t windows = 0;
  WindowGrid grid;
  std::shared_ptr<const SampleIndex> chosen;  // by other restrictions; null: all windows
  std::shared_ptr<const SampleList> list;     // null: samples are windows of the grid
  std::shared_ptr<const Draws> draws;         // with weights, of `list` or else of `chosen`
  const std::vector<VariablePlacement>* placements = nullptr;  // the view's
  const std::vector<VariablePlacement>* checked = nullptr;     // those whose missing values count
  /// Placements of made channels, by their number in TensorSet::made: beside others, and in coarsened
  /// tensors, which have variables too.
  const std::vector<VariablePlacement>*made = nullptr, *coarsened = nullptr;
  double at_most = 0;  // the share of missing values that a sample may have
};

/// Places of missing values of one variable, in some of its chunks' elements.
template <class Element>
struct MissingBoxOf {
  /// Per dimension of the array: indices, ascending. One index, whichever, where the dimension is
  /// in no window.
  std::vector<std::vector<std::int64_t>> indices;
  std::vector<Element> missing;  // C order over `indices`; not 0: a value is missing there
};
using MissingBox = MissingBoxOf<std::uint8_t>;
using CountedBox = MissingBoxOf<std::uint32_t>;  // how many values are missing

/// Marks every window in which `placement` takes one of the missing values.
void mark_windows(const VariablePlacement& placement, const WindowGrid& grid, MissingBox box,
                  MissingMarks& marks);

/// Adds to each window how many of the missing values `placement` takes in it, each as often as it
/// is in the tensor.
void count_missing(const VariablePlacement& placement, const WindowGrid& grid, CountedBox box,
                   MissingCounts& counts);

}  // namespace batchfs
