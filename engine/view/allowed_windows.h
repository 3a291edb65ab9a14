#pragma once
// The windows that a mask and a split leave together.

#include <memory>
#include <string>
#include <vector>

#include "engine/view/samples/restrictions.h"
#include "engine/view/samples/sample_index.h"
#include "engine/view/spec.h"

namespace batchfs {

struct AllowedWindows {
  /// Null: every window of the grid.
  std::shared_ptr<const SampleIndex> index;
  Dropped dropped;  // "mask", "split" and "gap"; a window counts for the first that leaves it out
  std::vector<std::string> warnings;
};

/// Starts left out along one dimension leave the grid. Throws invalid_argument where no window is
/// left, and as restrict_by_mask() and keep_part().
AllowedWindows keep_allowed(const ViewSpec& spec, const RestrictedView& view, WindowGrid& grid);

}  // namespace batchfs
