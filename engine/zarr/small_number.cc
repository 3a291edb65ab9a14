#include "engine/zarr/small_number.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>

namespace batchfs {

namespace {

using Specials = SmallNumber::Specials;

constexpr SmallNumber kNumbers[] = {
    {"int2", Kind::signed_int, 2, 1, 0, 0, 0, Specials::none},
    {"int4", Kind::signed_int, 4, 1, 0, 0, 0, Specials::none},
    {"uint2", Kind::unsigned_int, 2, 1, 0, 0, 0, Specials::none},
    {"uint4", Kind::unsigned_int, 4, 1, 0, 0, 0, Specials::none},
    {"bfloat16", Kind::floating, 16, 4, 7, 8, 127, Specials::ieee},
    {"float4_e2m1fn", Kind::floating, 4, 2, 1, 2, 1, Specials::none},
    {"float6_e2m3fn", Kind::floating, 6, 2, 3, 2, 1, Specials::none},
    {"float6_e3m2fn", Kind::floating, 6, 2, 2, 3, 3, Specials::none},
    {"float8_e3m4", Kind::floating, 8, 2, 4, 3, 3, Specials::ieee},
    {"float8_e4m3", Kind::floating, 8, 2, 3, 4, 7, Specials::ieee},
    {"float8_e4m3b11fnuz", Kind::floating, 8, 2, 3, 4, 11, Specials::zero_nan},
    {"float8_e4m3fn", Kind::floating, 8, 2, 3, 4, 7, Specials::last_nan},  // of TensorStore only
    {"float8_e4m3fnuz", Kind::floating, 8, 2, 3, 4, 8, Specials::zero_nan},
    {"float8_e5m2", Kind::floating, 8, 2, 2, 5, 15, Specials::ieee},
    {"float8_e5m2fnuz", Kind::floating, 8, 2, 2, 5, 16, Specials::zero_nan},
    {"float8_e8m0fnu", Kind::floating, 8, 4, 0, 8, 127, Specials::last_nan},
};

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Writes the value as a number of type().
void write(const SmallNumber& number, double value, std::byte* to) {
  const auto put = [&](auto stored) { std::memcpy(to, &stored, sizeof stored); };
  if (number.memory_bytes == 1)
    put(static_cast<std::int8_t>(static_cast<int>(value)));
  else if (number.memory_bytes == 2)
    put(static_cast<_Float16>(value));
  else
    put(static_cast<float>(value));
}

std::vector<std::byte> in_memory(const SmallNumber& number, double value) {
  std::vector<std::byte> bytes(number.memory_bytes);
  write(number, value, bytes.data());
  return bytes;
}

void decode_bfloat16(std::span<const std::byte> codes, bool big_endian, std::byte* out) {
  for (std::size_t at = 0; at + 1 < codes.size(); at += 2, out += 4) {
    std::uint16_t code;
    std::memcpy(&code, codes.data() + at, sizeof code);
    if (big_endian) code = __builtin_bswap16(code);
    const std::uint32_t bits = std::uint32_t{code} << 16;
    std::memcpy(out, &bits, sizeof bits);
  }
}

}  // namespace

double SmallNumber::value(std::uint32_t code) const {
  const std::uint32_t mask = (1U << bits) - 1;
  code &= mask;
  if (kind == Kind::unsigned_int) return code;
  const bool is_negative = exponent_bits + mantissa_bits < bits && code >> (bits - 1) != 0;
  if (kind == Kind::signed_int) return static_cast<double>(code) - (is_negative ? mask + 1.0 : 0);
  const std::uint32_t highest = (1U << exponent_bits) - 1;
  const std::uint32_t exponent = code >> mantissa_bits & highest;
  const std::uint32_t mantissa = code & ((1U << mantissa_bits) - 1);
  const bool is_full = exponent == highest;
  const bool has_subnormals = mantissa_bits > 0;
  double magnitude = 0;
  if (specials == Specials::zero_nan && code == 1U << (bits - 1)) return kNan;
  if (specials == Specials::ieee && is_full)
    magnitude = mantissa == 0 ? kInfinity : kNan;
  else if (specials == Specials::last_nan && is_full && mantissa == (1U << mantissa_bits) - 1)
    magnitude = kNan;
  else if (exponent == 0 && has_subnormals)
    magnitude = std::ldexp(mantissa, 1 - bias - mantissa_bits);
  else
    magnitude = std::ldexp(mantissa + (1U << mantissa_bits),
                           static_cast<int>(exponent) - bias - mantissa_bits);
  return is_negative ? -magnitude : magnitude;
}

void SmallNumber::decode(std::span<const std::byte> codes, bool big_endian,
                         std::span<std::byte> out) const {
  if (bits == 16) return decode_bfloat16(codes, big_endian, out.data());
  std::array<std::array<std::byte, 4>, 256> table;
  for (std::uint32_t code = 0; code < table.size(); ++code)
    write(*this, value(code), table[code].data());
  const auto look_up = [&](auto size) {
    std::byte* to = out.data();
    for (const std::byte code : codes) {
      std::memcpy(to, table[static_cast<std::uint8_t>(code)].data(), size());
      to += size();
    }
  };
  if (memory_bytes == 1)
    look_up(std::integral_constant<std::size_t, 1>());
  else if (memory_bytes == 2)
    look_up(std::integral_constant<std::size_t, 2>());
  else
    look_up(std::integral_constant<std::size_t, 4>());
}

std::vector<std::byte> SmallNumber::parse_fill(const JsonRef& fill) const {
  if (fill.is_string() && fill.string().starts_with("0x") && kind == Kind::floating) {
    const std::string text = fill.string();
    std::uint32_t code = 0;
    const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), code, 16);
    if (error != std::errc() || end != text.data() + text.size() ||
        text.size() != 2 + 2 * stored_bytes())
      throw fill.error("not the bits of a floating-point number of this size");
    return in_memory(*this, value(code));
  }
  // Parsed with 8 bytes, so that it is rounded once.
  const std::vector<std::byte> parsed = parse_fill_value(make_type(kind, 8), fill);
  double number = 0;
  if (kind == Kind::floating) {
    std::memcpy(&number, parsed.data(), sizeof number);
  } else {
    std::int64_t whole = 0;
    std::memcpy(&whole, parsed.data(), sizeof whole);
    number = static_cast<double>(whole);
  }
  const double stored = nearest(number);
  if (std::isnan(stored) != std::isnan(number) || std::isinf(stored) != std::isinf(number) ||
      (std::isfinite(number) && std::fabs(number) > largest()) ||
      (kind != Kind::floating && stored != number))
    throw fill.error("out of range for the data type");
  return in_memory(*this, stored);
}

double SmallNumber::largest() const {
  double largest = 0;
  for (std::uint32_t code = 0; code < 1U << bits; ++code)
    if (std::isfinite(value(code))) largest = std::max(largest, std::fabs(value(code)));
  return largest;
}

double SmallNumber::nearest(double number) const {
  double best = 0, least = kInfinity;
  for (std::uint32_t code = 0; code < 1U << bits; ++code) {
    const double candidate = value(code);
    if (candidate == number || (std::isnan(candidate) && std::isnan(number))) return candidate;
    const double distance = std::fabs(candidate - number);
    if (distance < least || (distance == least && code % 2 == 0)) {
      best = candidate;
      least = distance;
    }
  }
  return best;
}

const SmallNumber* find_small_number(std::string_view name) {
  const auto found = std::find_if(std::begin(kNumbers), std::end(kNumbers),
                                  [name](const SmallNumber& entry) { return entry.name == name; });
  return found == std::end(kNumbers) ? nullptr : found;
}

const SmallNumber* find_small_number(const JsonRef& data_type) {
  return find_small_number(data_type.is_string() ? data_type.string()
                                                 : data_type.at("name").string());
}

}  // namespace batchfs
