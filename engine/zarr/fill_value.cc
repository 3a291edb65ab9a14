// Fill values. Sources: Zarr v2 specification "Fill value encoding", v3 core "Fill value", the data
// type extensions. Writers have been sloppy: numbers as strings, floats on integers, 0 for strings.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "engine/base/utf8.h"
#include "engine/store/crypto.h"
#include "engine/zarr/data_type.h"

namespace batchfs {

namespace {

template <class T>
void store(std::vector<std::byte>& out, T value) {
  std::memcpy(out.data(), &value, sizeof value);
}

/// "NaN", "Infinity", "-Infinity", "1.5"; "+Infinity", as in an example of the specification.
double parse_float_text(const JsonRef& fill, const std::string& text) {
  if (text == "NaN" || text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "Infinity" || text == "+Infinity" || text == "inf")
    return std::numeric_limits<double>::infinity();
  if (text == "-Infinity" || text == "-inf") return -std::numeric_limits<double>::infinity();
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty())
    throw fill.error(fmt::format("'{}' is not a number", text));
  return value;
}

/// Not fill.number(): the number may be NaN or infinite.
double number_of(const JsonRef& fill) {
  return fill.is_number() ? fill.value().get<double>() : fill.number();
}

void store_float(std::vector<std::byte>& out, const JsonRef& fill, std::uint32_t itemsize,
                 std::size_t offset = 0) {
  std::vector<std::byte> value(itemsize);
  if (fill.is_string() && fill.string().starts_with("0x")) {
    const std::string text = fill.string();
    std::uint64_t bits = 0;
    const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), bits, 16);
    if (error != std::errc() || end != text.data() + text.size() || text.size() != 2 + 2 * itemsize)
      throw fill.error("not the bits of a floating-point number of this size");
    std::memcpy(value.data(), &bits, itemsize);
  } else {
    const double number = fill.is_string()            ? parse_float_text(fill, fill.string())
                          : fill.value().is_boolean() ? (fill.boolean() ? 1.0 : 0.0)
                                                      : number_of(fill);
    if (itemsize == 2)
      store(value, static_cast<_Float16>(number));
    else if (itemsize == 4)
      store(value, static_cast<float>(number));
    else
      store(value, number);
  }
  std::memcpy(out.data() + offset, value.data(), itemsize);
}

/// A whole number, as magnitude and sign: the range of 64 bits with and without sign.
struct Whole {
  std::uint64_t magnitude;
  bool negative;
};

std::optional<Whole> parse_whole_text(std::string_view text) {
  Whole whole{0, text.starts_with('-')};
  if (whole.negative) text.remove_prefix(1);
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), whole.magnitude);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return whole;
}

Whole parse_whole(const JsonRef& fill) {
  const Json& json = fill.value();
  if (json.is_boolean()) return {json.get<bool>() ? UINT64_C(1) : 0, false};
  if (json.is_number_unsigned()) return {json.get<std::uint64_t>(), false};
  if (json.is_number_integer()) {
    const auto value = json.get<std::int64_t>();
    return {value < 0 ? -static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value),
            value < 0};
  }
  if (json.is_string())
    if (const auto whole = parse_whole_text(json.get<std::string>())) return *whole;
  const double value =
      json.is_string() ? parse_float_text(fill, json.get<std::string>()) : number_of(fill);
  // numpy's cast of NaN or infinity to an integer is undefined; such metadata is not trusted.
  if (!(std::fabs(value) < 0x1p64) || value != std::trunc(value))
    throw fill.error("not a whole number, as the data type needs");
  return {static_cast<std::uint64_t>(std::fabs(value)), value < 0};
}

void store_integer(std::vector<std::byte>& out, const DataType& type, const JsonRef& fill) {
  const Whole whole = parse_whole(fill);
  const bool is_signed = type.kind == Kind::signed_int;
  const std::uint32_t bits = 8 * type.itemsize - (is_signed ? 1 : 0);
  const std::uint64_t high = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
  const std::uint64_t most = whole.negative ? (is_signed ? high + 1 : 0) : high;
  if (whole.magnitude > most) throw fill.error("out of range for the data type");
  const std::uint64_t value = whole.negative ? -whole.magnitude : whole.magnitude;
  std::memcpy(out.data(), &value, type.itemsize);
}

std::string decode_base64(const JsonRef& fill, const std::string& text) {
  try {
    return from_base64(text);
  } catch (const Error& error) {
    throw fill.error(error.why());
  }
}

void store_unicode(std::vector<std::byte>& out, const JsonRef& fill) {
  const std::u32string points = code_points(fill.string());
  if (points.size() * sizeof points[0] > out.size()) throw fill.error("longer than the data type");
  if (!points.empty()) std::memcpy(out.data(), points.data(), points.size() * sizeof points[0]);
}

/// {"x": 1.5, "y": ...}: v3 extension "struct".
void store_fields(std::vector<std::byte>& out, const DataType& type, const JsonRef& fill) {
  for (const Field& field : type.fields) {
    if (!field.shape.empty())
      throw fill.error("fill values of fields that are arrays are not supported",
                       ErrorCode::not_supported);
    const std::vector<std::byte> value = parse_fill_value(field.type, fill.at(field.name));
    std::copy(value.begin(), value.end(), out.begin() + field.offset);
  }
}

}  // namespace

std::vector<std::byte> parse_fill_value(const DataType& type, const JsonRef& fill) {
  std::vector<std::byte> out(type.itemsize, std::byte{0});
  if (type.is_variable()) return out;
  if (fill.is_null()) {  // as zarr-python: NaT, and zero for every other type, of fields too
    if (type.kind == Kind::datetime || type.kind == Kind::timedelta) store(out, INT64_MIN);
    return out;
  }
  const Json& json = fill.value();
  switch (type.kind) {
    case Kind::boolean: {
      bool value = false;
      if (json.is_boolean())
        value = json.get<bool>();
      else if (json.is_string())
        value = parse_float_text(fill, json.get<std::string>()) != 0;
      else
        value = number_of(fill) != 0;
      out[0] = std::byte{value};
      return out;
    }
    case Kind::signed_int:
    case Kind::unsigned_int:
      store_integer(out, type, fill);
      return out;
    case Kind::floating:
      store_float(out, fill, type.itemsize);
      return out;
    case Kind::complex: {
      const std::uint32_t half = type.itemsize / 2;
      if (json.is_array()) {
        const std::vector<JsonRef> parts = fill.elements();
        if (parts.size() != 2) throw fill.error("expected [real, imaginary]");
        store_float(out, parts[0], half);
        store_float(out, parts[1], half, half);
      } else {
        store_float(out, fill, half);
      }
      return out;
    }
    case Kind::datetime:
    case Kind::timedelta: {
      std::int64_t value = INT64_MIN;
      if (!(json.is_string() && json.get<std::string>() == "NaT")) value = fill.integer();
      store(out, value);
      return out;
    }
    case Kind::unicode:
      if (json.is_number() && json.get<double>() == 0) return out;
      store_unicode(out, fill);
      return out;
    case Kind::bytes:
    case Kind::raw:
    case Kind::structured: {
      if (json.is_number() && json.get<double>() == 0) return out;
      if (json.is_array()) {  // v3 r*, and byte lists
        const std::vector<JsonRef> bytes = fill.elements();
        if (bytes.size() > out.size()) throw fill.error("longer than the data type");
        for (std::size_t i = 0; i < bytes.size(); ++i)
          out[i] = static_cast<std::byte>(bytes[i].integer(0, 255));
        return out;
      }
      if (json.is_object()) {
        if (type.kind != Kind::structured) throw fill.error("fields, but the type has none");
        store_fields(out, type, fill);
        return out;
      }
      const std::string text = fill.string();
      const std::string bytes = decode_base64(fill, text);
      if (bytes.size() > out.size()) throw fill.error("longer than the data type");
      std::memcpy(out.data(), bytes.data(), bytes.size());
      if (type.kind == Kind::structured) swap_bytes(type, out.data(), 1);
      return out;
    }
    default:
      return out;
  }
}

}  // namespace batchfs
