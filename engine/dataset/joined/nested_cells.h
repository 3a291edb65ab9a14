#pragma once
// Nested grids: each cell of one holds a whole number of cells of the other.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace batchfs {

/// Labels of two sources along a dimension, less a base that both have in common. A label is the
/// middle of its cell.
struct NestedGrids {
  std::vector<long double> anchor;  // by position; NaN: no label
  std::vector<long double> own;     // ascending
  std::vector<std::int64_t> own_positions;
  bool begins = false;  // a label is the beginning of its cell: a time
  /// For a circle: own labels lie within one period, beginning after the widest gap.
  std::optional<long double> period;
  std::string anchor_name, own_name;  // "'lat' of 'era5'", for messages
};

/// By cell of the anchor the positions of its `ratio` cells, in the anchor's direction;
/// Positions::kNone for all of them where the source lacks one at its ends. `later` is added to the
/// labels of the anchor. Throws invalid_argument where the anchor is not evenly spaced, and where
/// the grids do not nest, with the first bad cell.
std::vector<std::int64_t> finer_cells(const NestedGrids& grids, std::int64_t ratio,
                                      long double later);

/// By position of the anchor that of the source's cell, which holds `ratio` of the anchor's. Both
/// may have gaps. Throws invalid_argument where the grids do not nest, with the first bad cell.
std::vector<std::int64_t> coarser_cells(const NestedGrids& grids, std::int64_t ratio,
                                        long double later);

}  // namespace batchfs
