#pragma once
// A dimension of a split, cut into cells: runs of successive positions that no region, block or
// group separates.

#include <cstdint>
#include <string>
#include <vector>

#include "engine/view/samples/restrictions.h"
#include "engine/view/split/split_spec.h"

namespace batchfs {

struct SplitAxis {
  std::string dim;
  std::size_t window = 0;              // the number of the window dimension
  std::vector<std::int64_t> begins;    // of each cell, in positions of the selection, and the end
  std::vector<std::int32_t> classes;   // of each cell: its block or group along the dimension
  std::int32_t class_count = 0;        // numbered in the order of the selection
  std::vector<std::string> texts;      // of each class, for draws by hash; else empty
  std::size_t words = 0;               // of each cell in `regions`
  std::vector<std::uint64_t> regions;  // of each cell: bit r is set if region r may hold it

  std::int64_t cells() const { return static_cast<std::int64_t>(begins.size()) - 1; }
  std::int64_t positions() const { return begins.back(); }
  std::int64_t cell_of(std::int64_t position) const;
};

/// In the order of "window". Throws invalid_argument, naming the key, for dimensions that are not
/// in "window" and for labels that do not exist or are not times. Reads coordinates only.
std::vector<SplitAxis> split_axes(const RestrictedView& view, const SplitSpec& split);

/// The label of a position of the selection, or "#3": for messages.
std::string position_text(const RestrictedView& view, const std::string& dim,
                          std::int64_t position);

/// The times of a dimension's selection in nanoseconds since 1970-01-01 of their calendar. Throws
/// invalid_argument, with `path` in front, if it has none, or for a position without a time.
std::vector<__int128> times_along(const RestrictedView& view, const std::string& dim,
                                  const std::string& path);

}  // namespace batchfs
