#pragma once
// The positions of an array that a row takes along one axis of a placement.

#include <algorithm>
#include <cstdint>

#include "engine/view/geometry.h"

namespace batchfs {

/// Calls `add(index, count, offset)` for array indices [index, index + count), and where the first
/// goes in the tensor, in bytes.
template <class Add>
void visit_positions(const AxisPlacement& axis, const Row& row, Add&& add) {
  const std::int64_t length = axis.selected.size();
  /// Positions [first, first + count) of the selection, none of them wrapped.
  const auto add_positions = [&](std::int64_t first, std::int64_t count, std::int64_t offset) {
    if (axis.selected.is_range()) return add(axis.selected[first], count, offset);
    const auto [held, end] = axis.selected.held();
    count = std::min(count, end - first);
    for (std::int64_t i = std::max<std::int64_t>(0, held - first); i < count; ++i)
      if (const std::int64_t index = axis.selected[first + i]; index != Positions::kNone)
        add(index, 1, offset + i * axis.stride);
  };
  if (axis.window < 0) return add_positions(0, length, 0);
  std::int64_t window_offset = 0;
  for (std::size_t o = 0; o < axis.offsets.size(); ++o) {
    std::int64_t first = axis.first(o, row.starts[static_cast<std::size_t>(axis.window)]);
    if (axis.wrap) first = ((first % length) + length) % length;
    std::int64_t offset = window_offset;
    for (std::int64_t left = axis.wrap ? axis.size : std::min(axis.size, length - first);
         left > 0;) {
      const std::int64_t here = std::min(left, length - first);
      add_positions(first, here, offset);
      offset += here * axis.stride;
      left -= here;
      first = 0;  // wrapped
    }
    window_offset += axis.size * axis.stride;
  }
}

/// Has the row any place along the dimensions that the placement repeats?
inline bool has_places(const VariablePlacement& placement, const Row& row) {
  return std::all_of(placement.repeated.begin(), placement.repeated.end(),
                     [&](const AxisPlacement& axis) {
                       if (axis.window < 0 || axis.wrap) return true;
                       const std::int64_t start = row.starts[static_cast<std::size_t>(axis.window)];
                       for (std::size_t o = 0; o < axis.offsets.size(); ++o)
                         if (axis.first(o, start) < axis.selected.size()) return true;
                       return false;
                     });
}

}  // namespace batchfs
