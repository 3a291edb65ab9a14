#include "tools/cli/value_text.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <string_view>

#include "engine/base/rounding.h"
#include "engine/base/utf8.h"
#include "engine/dataset/calendar.h"
#include "tools/cli/text.h"

namespace batchfs {

namespace {

template <class T>
T load(const std::byte* element) {
  T value;
  std::memcpy(&value, element, sizeof value);
  return value;
}

template <class T, class... Format>
void append_number(std::string& out, T value, Format... format) {
  char digits[64];
  const auto end = std::to_chars(digits, digits + sizeof digits, value, format...).ptr;
  out.append(digits, end);
}

/// The shortest text that reads back as the same number, always recognisable as a float.
template <class T>
void append_float(std::string& out, T value, TextStyle style) {
  if (!std::isfinite(value)) {
    if (style == TextStyle::json)
      out += "null";
    else
      out += std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
    return;
  }
  const std::size_t before = out.size();
  // Like Python: the shortest text of 300000 would be 3e+05.
  const T size = std::fabs(value);
  if (style == TextStyle::people && (size == 0 || (size >= T(1e-4) && size < T(1e16))))
    append_number(out, value, std::chars_format::fixed);
  else
    append_number(out, value);
  if (out.find_first_of(".e", before) == std::string::npos) out += ".0";
}

/// IEEE 754 binary16.
float half_to_float(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31, mantissa = bits & 1023;
  float value;
  if (exponent == 31)
    value = mantissa == 0 ? INFINITY : NAN;
  else if (exponent == 0)
    value = std::ldexp(static_cast<float>(mantissa), -24);
  else
    value = std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
  return (bits & 0x8000) != 0 ? -value : value;
}

void append_floating(std::string& out, std::uint32_t size, const std::byte* element,
                     TextStyle style) {
  if (size == 2)
    append_float(out, half_to_float(load<std::uint16_t>(element)), style);
  else if (size == 4)
    append_float(out, load<float>(element), style);
  else
    append_float(out, load<double>(element), style);
}

void append_integer(std::string& out, const DataType& type, const std::byte* element) {
  const bool is_signed = type.kind != Kind::unsigned_int;
  switch (type.itemsize) {
    case 1:
      return is_signed ? append_number(out, int{load<std::int8_t>(element)})
                       : append_number(out, unsigned{load<std::uint8_t>(element)});
    case 2:
      return is_signed ? append_number(out, int{load<std::int16_t>(element)})
                       : append_number(out, unsigned{load<std::uint16_t>(element)});
    case 4:
      return is_signed ? append_number(out, load<std::int32_t>(element))
                       : append_number(out, load<std::uint32_t>(element));
    default:
      return is_signed ? append_number(out, load<std::int64_t>(element))
                       : append_number(out, load<std::uint64_t>(element));
  }
}

void append_padded(std::string& out, std::int64_t value, std::size_t digits) {
  const std::string text = std::to_string(value < 0 ? -value : value);
  if (value < 0) out += '-';
  out.append(digits > text.size() ? digits - text.size() : 0, '0');
  out += text;
}

/// Dates farther away than this are shown as counts: they are not meant as dates.
constexpr std::int64_t kMaxYears = 1'000'000'000;

bool is_near(__int128 count, std::int64_t per_year) {
  return count < __int128{kMaxYears} * per_year && count > -__int128{kMaxYears} * per_year;
}

void append_date(std::string& out, std::int64_t days) {
  std::int64_t year = 0;
  int month = 0, day = 0;
  civil_from_days(days, year, month, day);
  append_padded(out, year, 4);
  out += '-';
  append_padded(out, month, 2);
  out += '-';
  append_padded(out, day, 2);
}

/// ISO 8601 to the precision of the unit; fractions of a second only when there are any.
void append_datetime(std::string& out, const DataType& type, std::int64_t count) {
  const __int128 value = static_cast<__int128>(count) * type.multiplier;
  if (type.unit == "Y" && is_near(value, 1))
    return append_padded(out, 1970 + static_cast<std::int64_t>(value), 4);
  if (type.unit == "M" && is_near(value, 12)) {
    const auto years = static_cast<std::int64_t>(floor_divide<__int128>(value, 12));
    append_padded(out, 1970 + years, 4);
    out += '-';
    return append_padded(out, static_cast<std::int64_t>(value) - years * 12 + 1, 2);
  }
  struct Unit {
    std::string_view name;
    std::int64_t seconds;  // per count, for units of a second and more
    int digits;            // after the second, for units below
  };
  static constexpr Unit kUnits[] = {{"W", 604800, 0}, {"D", 86400, 0}, {"h", 3600, 0}, {"m", 60, 0},
                                    {"s", 1, 0},      {"ms", 1, 3},    {"us", 1, 6},   {"ns", 1, 9},
                                    {"ps", 1, 12},    {"fs", 1, 15},   {"as", 1, 18}};
  for (const Unit& unit : kUnits) {
    if (type.unit != unit.name) continue;
    __int128 per_second = 1;
    for (int i = 0; i < unit.digits; ++i) per_second *= 10;
    const __int128 scaled = value * unit.seconds;
    const __int128 whole_days = floor_divide(scaled, per_second * 86400);
    if (!is_near(whole_days, 365)) break;
    const auto days = static_cast<std::int64_t>(whole_days);
    const __int128 rest = scaled - whole_days * 86400 * per_second;
    const std::int64_t second = static_cast<std::int64_t>(rest / per_second);
    append_date(out, days);
    if (unit.seconds >= 86400) return;
    out += 'T';
    append_padded(out, second / 3600, 2);
    if (unit.seconds >= 3600) return;
    out += ':';
    append_padded(out, second / 60 % 60, 2);
    if (unit.seconds >= 60) return;
    out += ':';
    append_padded(out, second % 60, 2);
    if (rest % per_second == 0) return;
    out += '.';
    return append_padded(out, static_cast<std::int64_t>(rest % per_second),
                         static_cast<std::size_t>(unit.digits));
  }
  append_number(out, count);  // also of nothing in particular ("generic")
}

/// S and U elements in UTF-8, without the padding; bytes are taken as Latin-1, so that none is
/// lost.
std::string characters(const DataType& type, const std::byte* element) {
  const std::size_t width = type.kind == Kind::unicode ? 4 : 1;
  std::string text;
  std::size_t end = 0;  // of the text up to the last character that is not padding
  for (std::size_t i = 0; i < type.itemsize / width; ++i) {
    const std::uint32_t c = width == 4 ? load<std::uint32_t>(element + 4 * i)
                                       : std::to_integer<std::uint32_t>(element[i]);
    append_utf8(text, c);
    if (c != 0) end = text.size();
  }
  text.resize(end);
  return text;
}

void append_string(std::string& out, const std::string& text, TextStyle style) {
  out += style == TextStyle::json ? json_text(Json(text), -1) : "'" + printable(text) + "'";
}

void append_hex(std::string& out, const DataType& type, const std::byte* element, TextStyle style) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (std::uint32_t i = 0; i < type.itemsize; ++i) {
    const auto byte = std::to_integer<unsigned>(element[i]);
    text += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  append_string(out, text, style);
}

void append_field(std::string& out, const Field& field, std::size_t dim, const std::byte*& element,
                  TextStyle style) {
  if (dim == field.shape.size()) {
    append_value(out, field.type, element, style);
    element += field.type.itemsize;
    return;
  }
  out += '[';
  for (std::int64_t i = 0; i < field.shape[dim]; ++i) {
    if (i > 0) out += ", ";
    append_field(out, field, dim + 1, element, style);
  }
  out += ']';
}

}  // namespace

void append_value(std::string& out, const DataType& type, const std::byte* element,
                  TextStyle style) {
  const bool json = style == TextStyle::json;
  switch (type.kind) {
    case Kind::boolean:
      out += element[0] != std::byte{0} ? (json ? "true" : "True") : (json ? "false" : "False");
      return;
    case Kind::signed_int:
    case Kind::unsigned_int:
      return append_integer(out, type, element);
    case Kind::bfloat16:
      break;  // no array has it
    case Kind::floating:
      return append_floating(out, type.itemsize, element, style);
    case Kind::complex: {
      const std::uint32_t half = type.itemsize / 2;
      out += json ? "[" : "(";
      append_floating(out, half, element, style);
      out += json ? ", " : " + ";
      append_floating(out, half, element + half, style);
      out += json ? "]" : "j)";
      return;
    }
    case Kind::datetime:
    case Kind::timedelta: {
      const auto count = load<std::int64_t>(element);
      if (count == INT64_MIN) {
        out += json ? "null" : "NaT";
      } else if (type.kind == Kind::timedelta) {
        append_number(out, count);
      } else {
        if (json) out += '"';
        append_datetime(out, type, count);
        if (json) out += '"';
      }
      return;
    }
    case Kind::bytes:
    case Kind::unicode:
      return append_string(out, characters(type, element), style);
    case Kind::structured:
      out += json ? "{" : "(";
      for (std::size_t i = 0; i < type.fields.size(); ++i) {
        if (i > 0) out += ", ";
        const Field& field = type.fields[i];
        if (json) append_string(out, field.name, style), out += ": ";
        const std::byte* at = element + field.offset;
        append_field(out, field, 0, at, style);
      }
      out += json ? "}" : ")";
      return;
    case Kind::raw:
    case Kind::variable_string:
    case Kind::variable_bytes:
      return append_hex(out, type, element, style);
  }
}

}  // namespace batchfs
