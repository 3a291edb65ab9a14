#include "engine/write/type_text.h"

#include <cmath>
#include <cstring>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "engine/base/utf8.h"
#include "engine/store/cloud/signing/crypto.h"

namespace batchfs {

namespace {

template <class T>
T value_at(std::span<const std::byte> element) {
  T value;
  std::memcpy(&value, element.data(), sizeof value);
  return value;
}

double float_at(std::span<const std::byte> element, std::uint32_t itemsize) {
  if (itemsize == 2) return static_cast<double>(value_at<_Float16>(element));
  if (itemsize == 4) return value_at<float>(element);
  return value_at<double>(element);
}

/// A number; a name or, for a NaN that is not the usual one, its bits: v3 core, "Fill value".
Json float_text(std::span<const std::byte> element, std::uint32_t itemsize, bool with_bits) {
  const double value = float_at(element, itemsize);
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  if (!std::isnan(value)) return value;
  std::uint64_t bits = 0;
  std::memcpy(&bits, element.data(), itemsize);
  const std::uint64_t usual = itemsize == 2   ? 0x7e00
                              : itemsize == 4 ? 0x7fc00000
                                              : UINT64_C(0x7ff8000000000000);
  if (!with_bits || bits == usual) return "NaN";
  return fmt::format("0x{:0{}x}", bits, 2 * itemsize);
}

Json integer_text(const DataType& type, std::span<const std::byte> element) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, element.data(), type.itemsize);
  if (type.kind == Kind::unsigned_int) return bits;
  const int unused = 64 - 8 * static_cast<int>(type.itemsize);
  return static_cast<std::int64_t>(bits << unused) >> unused;
}

std::string base64_of(std::span<const std::byte> bytes) {
  return base64({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::string base64_double(double value) { return base64_of(std::as_bytes(std::span(&value, 1))); }

std::string unicode_text(std::span<const std::byte> element) {
  std::string text;
  for (std::size_t at = 0; at + 4 <= element.size(); at += 4) {
    const auto point = value_at<char32_t>(element.subspan(at));
    if (point == 0) break;
    append_utf8(text, point);
  }
  return text;
}

Json fill_text(const DataType& type, std::span<const std::byte> element, bool with_bits) {
  switch (type.kind) {
    case Kind::boolean:
      return element[0] != std::byte{0};
    case Kind::signed_int:
    case Kind::unsigned_int:
      return integer_text(type, element);
    case Kind::floating:
      return float_text(element, type.itemsize, with_bits);
    case Kind::complex: {
      const std::uint32_t half = type.itemsize / 2;
      return Json::array({float_text(element.first(half), half, with_bits),
                          float_text(element.subspan(half), half, with_bits)});
    }
    case Kind::datetime:
    case Kind::timedelta:
      return value_at<std::int64_t>(element);
    case Kind::unicode:
      return unicode_text(element);
    case Kind::bytes:
    case Kind::raw:
    case Kind::structured:
      return base64_of(element);
    default:
      return "";
  }
}

}  // namespace

Json v3_data_type(const DataType& type) {
  const auto of_length = [&type](const char* name) {
    return Json{{"name", name}, {"configuration", {{"length_bytes", type.itemsize}}}};
  };
  switch (type.kind) {
    case Kind::datetime:
    case Kind::timedelta:
      return {{"name", type.kind == Kind::datetime ? "numpy.datetime64" : "numpy.timedelta64"},
              {"configuration", {{"unit", type.unit}, {"scale_factor", type.multiplier}}}};
    case Kind::bytes:
      return of_length("null_terminated_bytes");
    case Kind::unicode:
      return of_length("fixed_length_utf32");
    case Kind::raw:
      return of_length("raw_bytes");
    case Kind::variable_string:
      return "string";
    case Kind::variable_bytes:
      return "variable_length_bytes";
    case Kind::structured: {
      Json fields = Json::array();
      for (const Field& field : type.fields) {
        if (!field.shape.empty())
          throw Error(ErrorCode::not_supported,
                      fmt::format("the field '{}' is an array, which Zarr format 3 cannot hold; "
                                  "use --format 2",
                                  field.name));
        fields.push_back(Json::array({field.name, v3_data_type(field.type)}));
      }
      return {{"name", "structured"}, {"configuration", {{"fields", std::move(fields)}}}};
    }
    default:
      return type.name();
  }
}

Json v3_fill_value(const DataType& type, std::span<const std::byte> element) {
  return fill_text(type, element, true);
}

Json v2_fill_value(const DataType& type, std::span<const std::byte> element) {
  return fill_text(type, element, false);
}

Json fill_attribute(const DataType& type, std::span<const std::byte> element) {
  if (type.kind == Kind::floating) return base64_double(float_at(element, type.itemsize));
  if (type.kind == Kind::complex) {
    const std::uint32_t half = type.itemsize / 2;
    return Json::array({base64_double(float_at(element, half)),
                        base64_double(float_at(element.subspan(half), half))});
  }
  return fill_text(type, element, false);
}

std::optional<std::vector<std::byte>> parse_fill_attribute(const DataType& type,
                                                           const Json& value) {
  try {
    if (type.kind == Kind::floating && value.is_string() &&
        value.get_ref<const std::string&>().size() == 12) {
      const std::string bytes = from_base64(value.get<std::string>());
      if (bytes.size() != 8) return std::nullopt;
      const Json number =
          fill_text(make_type(Kind::floating, 8), std::as_bytes(std::span(bytes.data(), 8)), false);
      return parse_fill_value(type, JsonRef(number, "_FillValue"));
    }
    return parse_fill_value(type, JsonRef(value, "_FillValue"));
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace batchfs
