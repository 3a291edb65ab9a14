#pragma once
// "mask" of a view's samples: windows whose footprint holds enough of the cells that a variable of
// the store marks.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/json.h"
#include "engine/dataset/label_number.h"
#include "engine/view/samples/sample_index.h"

namespace batchfs {

struct RestrictedView;
struct WindowGrid;

/// Windows that are not samples: how many each restriction left out, in the order of application.
using Dropped = std::vector<std::pair<std::string, std::int64_t>>;

/// Which starts of a grid pass a mask.
struct MaskedStarts {
  std::vector<std::size_t> windows;  // the mask's window dimensions, ascending
  std::vector<bool> passed;          // row-major over the starts along these
};

struct MaskSpec {
  std::string variable;
  std::optional<LabelNumber> above, below;  // a cell is marked if its value is; else if not 0
  double least = 1, most = 1;               // share of the footprint's cells that are marked
  bool center = false;  // in place of the footprint the cell in the window's middle
  std::string path;     // in the file, for messages
};

/// The value of "mask". Throws invalid_argument with the JSON path.
MaskSpec parse_mask(const JsonRef& json);

/// Reads the mask, blocking, and tests every start. Throws as read_window_values(), and where no
/// start of the grid passes. Takes 5 bytes of memory for each cell of the selection.
MaskedStarts masked_starts(const MaskSpec& mask, const RestrictedView& view,
                           const WindowGrid& grid);

/// Leaves out the windows that do not pass, and counts them. Along one dimension they leave the
/// grid; for a mask over several, returns the remaining windows, in the numbering of the grid, else
/// null. Throws as masked_starts(), and not_supported for more windows than bits are made for.
std::shared_ptr<const SampleIndex> restrict_by_mask(const MaskSpec& mask,
                                                    const RestrictedView& view, WindowGrid& grid,
                                                    Dropped& dropped);

/// The windows that are in both; either may be null for all windows.
std::shared_ptr<const SampleIndex> in_both(const std::shared_ptr<const SampleIndex>& a,
                                           const std::shared_ptr<const SampleIndex>& b);

}  // namespace batchfs
