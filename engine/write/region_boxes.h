#pragma once
// Boxes of a grid inside of a region, and where their elements lie in the region's memory.

#include <cstdint>

#include "engine/base/dims.h"

namespace batchfs {

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// The cells of a grid, each of `unit` elements, that a region touches.
inline Box units_in(const Box& region, const Dims& unit) {
  Box units{Dims(unit.size()), Dims(unit.size())};
  for (std::size_t d = 0; d < unit.size(); ++d) {
    units.start[d] = region.start[d] / unit[d];
    units.shape[d] = ceil_div(region.start[d] + region.shape[d], unit[d]) - units.start[d];
  }
  return units;
}

/// The `number`-th position in a box, row-major.
inline Dims position_in(const Box& box, std::int64_t number) {
  Dims at(box.shape.size());
  for (std::size_t d = at.size(); d-- > 0;) {
    at[d] = box.start[d] + number % box.shape[d];
    number /= box.shape[d];
  }
  return at;
}

/// And back.
inline std::int64_t number_in(const Box& box, const Dims& at) {
  std::int64_t number = 0;
  for (std::size_t d = 0; d < at.size(); ++d)
    number = number * box.shape[d] + (at[d] - box.start[d]);
  return number;
}

/// The elements that two boxes share.
inline Box shared_box(const Box& a, const Box& b) {
  Box both{Dims(a.start.size()), Dims(a.start.size())};
  for (std::size_t d = 0; d < a.start.size(); ++d) {
    both.start[d] = std::max(a.start[d], b.start[d]);
    const std::int64_t end = std::min(a.start[d] + a.shape[d], b.start[d] + b.shape[d]);
    both.shape[d] = std::max<std::int64_t>(0, end - both.start[d]);
  }
  return both;
}

/// Bytes from the element `from` to the element `start`.
inline std::int64_t byte_offset(const Dims& start, const Dims& from, const Dims& strides) {
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < start.size(); ++d) offset += (start[d] - from[d]) * strides[d];
  return offset;
}

}  // namespace batchfs
