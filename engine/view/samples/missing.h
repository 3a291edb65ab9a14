#pragma once
// From missing values to the windows that hold them.

#include <cstdint>
#include <vector>

#include "engine/view/geometry.h"
#include "engine/view/samples/sample_index.h"

namespace batchfs {

/// What is needed to find the samples of a view that skips missing values.
struct ViewScan {
  std::int64_t windows = 0;
  WindowGrid grid;
  const std::vector<VariablePlacement>* placements = nullptr;  // the view's
};

/// Places of missing values of one variable, in some of its chunks' elements.
struct MissingBox {
  /// Per dimension of the array: indices, ascending. One index, whichever, where the dimension is
  /// in no window.
  std::vector<std::vector<std::int64_t>> indices;
  std::vector<std::uint8_t> missing;  // C order over `indices`; not 0: a value is missing there
};

/// Marks every window in which `placement` takes one of the missing values.
void mark_windows(const VariablePlacement& placement, const WindowGrid& grid, MissingBox box,
                  MissingMarks& marks);

}  // namespace batchfs
