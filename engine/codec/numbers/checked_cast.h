#pragma once
// Conversion of numbers by value, for the codec `cast_value`: every value that does not fit is
// handled as configured, or is an error. Source: zarr-extensions, codec "cast_value".

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

namespace batchfs {

enum class Rounding : std::uint8_t {
  nearest_even,
  towards_zero,
  towards_positive,
  towards_negative,
  nearest_away,
};

enum class OutOfRange : std::uint8_t { error, clamp, wrap };

struct CastRules {
  Rounding rounding = Rounding::nearest_even;
  OutOfRange out_of_range = OutOfRange::error;
};

/// The standard library has no limits of _Float16.
template <class T>
struct FloatBits {
  static constexpr int kMantissa = std::numeric_limits<T>::digits;
  static constexpr int kMaxExponent = std::numeric_limits<T>::max_exponent;
  using Word = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
};
template <>
struct FloatBits<_Float16> {
  static constexpr int kMantissa = 11;
  static constexpr int kMaxExponent = 16;
  using Word = std::uint16_t;
};

/// Does every value of From have an equal one of To?
template <class To, class From>
constexpr bool is_exact_cast() {
  if constexpr (std::is_integral_v<From> && std::is_integral_v<To>) {
    return std::in_range<To>(std::numeric_limits<From>::min()) &&
           std::in_range<To>(std::numeric_limits<From>::max());
  } else if constexpr (std::is_integral_v<From>) {
    constexpr int kBits = std::numeric_limits<From>::digits;
    return kBits <= FloatBits<To>::kMantissa && kBits < FloatBits<To>::kMaxExponent;
  } else {
    return !std::is_integral_v<To> && sizeof(To) >= sizeof(From);
  }
}

/// The float next to a finite `value`, towards the infinity of this sign.
template <class T>
T next_float(T value, bool upwards) {
  using Word = typename FloatBits<T>::Word;
  constexpr Word kSign = Word{1} << (8 * sizeof(Word) - 1);
  const auto bits = std::bit_cast<Word>(value);
  const auto magnitude = static_cast<Word>(bits & ~kSign);
  const bool negative = (bits & kSign) != 0;
  if (magnitude == 0)
    return std::bit_cast<T>(static_cast<Word>(upwards ? Word{1} : (kSign | Word{1})));
  const bool away = negative != upwards;
  return std::bit_cast<T>(static_cast<Word>(away ? bits + 1 : bits - 1));
}

/// `nearest` is `exact` rounded to nearest, ties to even.
template <class T>
T round_otherwise(T nearest, long double exact, Rounding rounding) {
  const auto got = static_cast<long double>(nearest);
  if (got == exact || rounding == Rounding::nearest_even) return nearest;
  const bool is_above = got > exact;
  switch (rounding) {
    case Rounding::towards_zero:
      return is_above == (exact > 0) ? next_float(nearest, !is_above) : nearest;
    case Rounding::towards_positive:
      return is_above ? nearest : next_float(nearest, true);
    case Rounding::towards_negative:
      return is_above ? next_float(nearest, false) : nearest;
    default: {
      if (std::isinf(got)) return nearest;
      const T other = next_float(nearest, !is_above);
      const bool is_tie = (got + static_cast<long double>(other)) / 2 == exact;
      return is_tie && is_above != (exact > 0) ? other : nearest;
    }
  }
}

inline double round_to_whole(double value, Rounding rounding) {
  switch (rounding) {
    case Rounding::towards_zero:
      return std::trunc(value);
    case Rounding::towards_positive:
      return std::ceil(value);
    case Rounding::towards_negative:
      return std::floor(value);
    case Rounding::nearest_away:
      return std::round(value);
    default:
      return std::nearbyint(value);
  }
}

/// `value` as To; nullopt where the rules allow no value: out of range, or NaN or infinity for an
/// integer.
template <class To, class From>
std::optional<To> checked_cast(From value, CastRules rules) {
  if constexpr (is_exact_cast<To, From>()) {
    return static_cast<To>(value);
  } else if constexpr (std::is_integral_v<From> && std::is_integral_v<To>) {
    if (std::in_range<To>(value) || rules.out_of_range == OutOfRange::wrap)
      return static_cast<To>(value);
    if (rules.out_of_range == OutOfRange::error) return std::nullopt;
    return value < 0 ? std::numeric_limits<To>::min() : std::numeric_limits<To>::max();
  } else if constexpr (std::is_integral_v<To>) {
    const auto wide = static_cast<double>(value);
    if (!std::isfinite(wide)) return std::nullopt;
    const double whole = round_to_whole(wide, rules.rounding);
    // Both are powers of two, or zero: exact.
    constexpr double kLow = static_cast<double>(std::numeric_limits<To>::min());
    constexpr double kEnd =
        2.0 * static_cast<double>(UINT64_C(1) << (std::numeric_limits<To>::digits - 1));
    if (whole >= kLow && whole < kEnd) return static_cast<To>(whole);
    switch (rules.out_of_range) {
      case OutOfRange::clamp:
        return whole < 0 ? std::numeric_limits<To>::min() : std::numeric_limits<To>::max();
      case OutOfRange::wrap: {
        const double rest = std::fmod(whole, 0x1p64);  // exact
        const auto magnitude = static_cast<std::uint64_t>(std::fabs(rest));
        return static_cast<To>(rest < 0 ? -magnitude : magnitude);
      }
      default:
        return std::nullopt;
    }
  } else {
    To nearest;
    if constexpr (std::is_same_v<To, _Float16> && std::is_integral_v<From>)
      nearest =
          static_cast<To>(static_cast<double>(value));  // what a double rounds is out of range
    else
      nearest = static_cast<To>(value);
    const auto exact = static_cast<long double>(value);
    if (!std::isfinite(exact)) return nearest;
    const To result = round_otherwise(nearest, exact, rules.rounding);
    if (std::isinf(static_cast<double>(result)) && rules.out_of_range != OutOfRange::clamp)
      return std::nullopt;
    return result;
  }
}

}  // namespace batchfs
