#pragma once
// Sizes and offsets that must be multiples.

#include <concepts>

namespace batchfs {

/// The smallest multiple of `multiple` that is at least `size`. Precondition: multiple > 0, and the
/// result fits.
template <std::unsigned_integral T>
constexpr T round_up(T size, T multiple) {
  return (size + multiple - 1) / multiple * multiple;
}

}  // namespace batchfs
