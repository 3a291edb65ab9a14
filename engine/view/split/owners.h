#pragma once
// Which part owns each cell of a split.

#include <cstdint>
#include <vector>

#include "engine/view/split/split_axis.h"

namespace batchfs {

struct SplitOwners {
  /// The owner of cells that no part owns.
  static constexpr std::uint8_t kNone = 255;

  std::vector<std::int64_t> shape;  // cells along each axis
  /// The number of each cell's part, or with folds of its fold, in C order.
  std::vector<std::uint8_t> parts;
};

/// Throws invalid_argument for regions of two parts that overlap, for a part that gets no block,
/// and for more folds than blocks; not_supported for too many cells.
SplitOwners find_owners(const RestrictedView& view, const SplitSpec& split,
                        const std::vector<SplitAxis>& axes);

/// How many of `blocks` each part gets: fractions rounded by largest remainder, ties to the earlier
/// part.
std::vector<std::int64_t> share_blocks(const SplitSpec& split, std::int64_t blocks);

/// The random number of a text, 0 to 2^64 - 1, by which blocks and groups are drawn.
std::uint64_t text_number(std::uint64_t seed, const std::string& text);

}  // namespace batchfs
