#pragma once
// The windows of a view that are samples of one part of its split.

#include <memory>
#include <string>
#include <vector>

#include "engine/view/samples/restrictions.h"
#include "engine/view/samples/sample_index.h"
#include "engine/view/split/part_boxes.h"

namespace batchfs {

struct PartWindows {
  Dropped dropped;  // "split", and "gap" of windows inside the part
  /// The windows that are left, where the split is along several dimensions. Null: those of the
  /// grid, from which the others were removed.
  std::shared_ptr<const SampleIndex> index;
  /// One line for each gap along a dimension that does not separate parts.
  std::vector<std::string> warnings;
};

/// Leaves the windows of the part in the grid or, for a split along several dimensions, in an
/// index. Throws invalid_argument if the part has no sample, and as PartBoxes.
PartWindows keep_part(const RestrictedView& view, const SplitSpec& split, const SplitPart& part,
                      WindowGrid& grid);

}  // namespace batchfs
