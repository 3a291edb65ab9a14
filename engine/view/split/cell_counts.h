#pragma once
// How many marked cells a box holds, in constant time: a summed-area table over any number of
// dimensions. 4 bytes a cell.

#include <cstdint>
#include <vector>

namespace batchfs {

/// Cells along one dimension: first, end.
struct CellSpan {
  std::int64_t first = 0, end = 0;
  bool operator==(const CellSpan&) const = default;
};

class CellCounts {
 public:
  /// `marked`: of each cell, C order over `shape`. Precondition: fewer than 2^32 cells.
  CellCounts(const std::vector<std::int64_t>& shape, const std::vector<bool>& marked);

  /// Precondition: spans lie inside the shape, one along each dimension.
  std::int64_t count(const std::vector<CellSpan>& box) const;

 private:
  std::vector<std::size_t> strides_;
  std::vector<std::uint32_t> before_;  // marked cells before each corner, one more a dimension
};

}  // namespace batchfs
