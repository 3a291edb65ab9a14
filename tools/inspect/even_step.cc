#include "tools/inspect/even_step.h"

#include <algorithm>
#include <cmath>

namespace batchfs {

namespace {

constexpr int kFloatDigits = 23, kDoubleDigits = 52;  // behind the point of a mantissa

/// `at`: returns a value as __int128, nullopt for a missing one.
template <class At>
std::optional<double> exact_step(std::int64_t count, At at) {
  std::optional<__int128> before = count < 2 ? std::nullopt : at(0), step;
  if (!before) return std::nullopt;
  for (std::int64_t i = 1; i < count; ++i) {
    const std::optional<__int128> value = at(i);
    if (!value || (step && *value - *before != *step)) return std::nullopt;
    step = *value - *before;
    before = value;
  }
  return *step == 0 ? std::nullopt : std::optional(static_cast<double>(*step));
}

/// Were values of up to `largest` rounded to float32? float64 may hold such values.
/// Values without the last bits, such as whole metres, were not rounded.
bool is_rounded_to_float(const NdArray& values, long double largest) {
  const long double coarse = std::ldexp(1.0L, std::ilogb(largest) - kFloatDigits + 1);
  bool has_last_bits = false;
  for (std::int64_t i = 0; i < values.shape[0]; ++i) {
    const LabelNumber value = label_number(values, i);
    if (static_cast<LabelNumber>(static_cast<float>(value)) != value) return false;
    has_last_bits = has_last_bits || std::fmod(value, coarse) != 0;
  }
  return has_last_bits;
}

std::optional<double> floating_step(const NdArray& values) {
  const std::int64_t count = values.shape[0];
  const LabelNumber first = label_number(values, 0);
  const LabelNumber step =
      (label_number(values, count - 1) - first) / static_cast<LabelNumber>(count - 1);
  LabelNumber largest = 0, farthest = 0;  // from the line through both ends
  for (std::int64_t i = 0; i < count; ++i) {
    const LabelNumber value = label_number(values, i);
    if (!std::isfinite(value)) return std::nullopt;
    largest = std::max(largest, std::fabs(value));
    farthest = std::max(farthest, std::fabs(value - first - step * static_cast<LabelNumber>(i)));
  }
  if (step == 0) return std::nullopt;
  // The value, both ends, and the arithmetic that made the value are rounded.
  const auto is_even = [&](int digits) {
    const LabelNumber rounding = 2 * std::ldexp(largest, -digits);
    return farthest <= rounding && 4 * rounding <= std::fabs(step);
  };
  if (is_even(kDoubleDigits) || (is_even(kFloatDigits) && is_rounded_to_float(values, largest)))
    return static_cast<double>(step);
  return std::nullopt;
}

}  // namespace

std::optional<double> even_step(const NdArray& values) {
  if (values.shape.size() != 1 || values.shape[0] < 2) return std::nullopt;
  switch (values.type.kind) {
    case Kind::floating:
      return values.type.itemsize >= 4 ? floating_step(values) : std::nullopt;
    case Kind::signed_int:
    case Kind::unsigned_int:
      return exact_step(values.shape[0], [&](std::int64_t i) {
        return std::optional(static_cast<__int128>(label_number(values, i)));
      });
    case Kind::datetime:
    case Kind::timedelta:
      return exact_step(values.shape[0], [&](std::int64_t i) -> std::optional<__int128> {
        const std::int64_t time = label_count(values, i);
        return time == INT64_MIN ? std::nullopt : std::optional<__int128>(time);
      });
    default:
      return std::nullopt;
  }
}

std::optional<double> even_step(const TimeAxis& times, std::int64_t count) {
  return exact_step(count, [&](std::int64_t i) { return times.nanoseconds(i); });
}

}  // namespace batchfs
