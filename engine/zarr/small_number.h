#pragma once
// Numbers that are stored in a form of their own, which numpy does not have: integers and floats of
// less than a byte, floats of a byte, and bfloat16. In memory they are numbers of the next type
// that holds all of their values. Sources: zarr-extensions, data types; ml_dtypes.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/zarr/data_type.h"

namespace batchfs {

struct SmallNumber {
  /// Which codes stand for infinities and NaN.
  enum class Specials : std::uint8_t {
    ieee,      // the highest exponent: infinities and NaN
    last_nan,  // the highest exponent with all bits set: NaN; no infinities
    zero_nan,  // negative zero is NaN; no infinities
    none,
  };
  std::string_view name;  // of format 3
  Kind kind;              // integers, or floating
  std::uint8_t bits;      // stored; higher ones are ignored
  std::uint8_t memory_bytes;
  std::uint8_t mantissa_bits;  // of floats, and the rest:
  std::uint8_t exponent_bits;
  std::int16_t bias;
  Specials specials;

  std::uint32_t stored_bytes() const { return bits > 8 ? 2 : 1; }
  /// In memory.
  DataType type() const { return make_type(kind, memory_bytes); }

  /// The value that a code stands for, exactly.
  double value(std::uint32_t code) const;

  /// Decodes codes, of two bytes in this order, into numbers of type(). Precondition: `out` has room
  /// for all.
  void decode(std::span<const std::byte> codes, bool big_endian, std::span<std::byte> out) const;

  /// The nearest value of a code, the even code of two; 0 where there is none.
  double nearest(double number) const;

  /// The greatest magnitude of a finite number.
  double largest() const;

  /// A fill value, rounded to the nearest number that can be stored, as a number of type().
  std::vector<std::byte> parse_fill(const JsonRef& fill) const;
};

/// nullptr: numbers of this name are stored as in memory.
const SmallNumber* find_small_number(std::string_view name);

/// Finds it by the name in a `data_type` of format 3.
const SmallNumber* find_small_number(const JsonRef& data_type);

}  // namespace batchfs
