#pragma once
// Rounding of whole numbers.

#include <concepts>

namespace batchfs {

/// The smallest multiple of `multiple` that is at least `size`. Precondition: multiple > 0, and the
/// result fits.
template <std::unsigned_integral T>
constexpr T round_up(T size, T multiple) {
  return (size + multiple - 1) / multiple * multiple;
}

/// The largest whole number that is at most a / b. Precondition: b > 0.
template <class T>
constexpr T floor_divide(T a, T b) {
  return a / b - (a % b < 0 ? 1 : 0);
}

}  // namespace batchfs
