#include "engine/zarr/data_type.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/zarr/refused_codecs.h"

namespace batchfs {

namespace {

char kind_letter(Kind kind) {
  switch (kind) {
    case Kind::boolean:
      return 'b';
    case Kind::signed_int:
      return 'i';
    case Kind::unsigned_int:
      return 'u';
    case Kind::floating:
      return 'f';
    case Kind::complex:
      return 'c';
    case Kind::datetime:
      return 'M';
    case Kind::timedelta:
      return 'm';
    case Kind::bytes:
      return 'S';
    case Kind::unicode:
      return 'U';
    default:
      return 'V';
  }
}

std::string unit_text(const DataType& type) {
  if (type.unit == "generic") return "";
  return "[" + (type.multiplier == 1 ? "" : std::to_string(type.multiplier)) + type.unit + "]";
}

/// numpy typestr in native order, unquoted.
std::string native_typestr(const DataType& type) {
  const bool one_byte = type.itemsize == 1 && type.kind != Kind::unicode;
  const bool orderless = one_byte || type.kind == Kind::bytes || type.kind == Kind::raw ||
                         type.kind == Kind::structured;
  const std::uint32_t count = type.kind == Kind::unicode ? type.itemsize / 4 : type.itemsize;
  std::string text = fmt::format("{}{}{}", orderless ? '|' : '<', kind_letter(type.kind), count);
  if (type.kind == Kind::datetime || type.kind == Kind::timedelta) text += unit_text(type);
  return text;
}

/// Quotes text as a Python literal.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  return out + "'";
}

void check_numeric_size(Kind kind, std::uint32_t size, const std::string& name) {
  const auto allowed = [&](std::initializer_list<std::uint32_t> sizes) {
    return std::find(sizes.begin(), sizes.end(), size) != sizes.end();
  };
  bool ok = true;
  switch (kind) {
    case Kind::boolean:
      ok = allowed({1});
      break;
    case Kind::signed_int:
    case Kind::unsigned_int:
      ok = allowed({1, 2, 4, 8});
      break;
    case Kind::floating:
      ok = allowed({2, 4, 8});
      break;
    case Kind::complex:
      ok = allowed({8, 16});
      break;
    case Kind::datetime:
    case Kind::timedelta:
      ok = allowed({8});
      break;
    default:
      ok = size <= kMaxItemBytes;
  }
  if (!ok)
    throw Error(ErrorCode::not_supported, fmt::format("the data type '{}' is not supported", name));
}

/// "<f4", "|b1", "<M8[25us]", ">U7". `shown` is how messages call it.
DataType parse_typestr(const std::string& text, const std::string& shown) {
  auto bad = [&] {
    return Error(ErrorCode::invalid_argument, fmt::format("'{}' is not a numpy data type", shown));
  };
  if (text.size() < 3) throw bad();
  DataType type;
  switch (text[0]) {
    case '<':
    case '|':
    case '=':
      break;
    case '>':
      type.big_endian = true;
      break;
    default:
      throw bad();
  }
  switch (text[1]) {
    case 'b':
      type.kind = Kind::boolean;
      break;
    case 'i':
      type.kind = Kind::signed_int;
      break;
    case 'u':
      type.kind = Kind::unsigned_int;
      break;
    case 'f':
      type.kind = Kind::floating;
      break;
    case 'c':
      type.kind = Kind::complex;
      break;
    case 'M':
      type.kind = Kind::datetime;
      break;
    case 'm':
      type.kind = Kind::timedelta;
      break;
    case 'S':
    case 'a':
      type.kind = Kind::bytes;
      break;
    case 'U':
      type.kind = Kind::unicode;
      break;
    case 'V':
      type.kind = Kind::raw;
      break;
    default:
      throw Error(ErrorCode::not_supported,
                  fmt::format("the data type '{}' is not supported", shown));
  }
  std::uint32_t size = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + 2, end, size);
  if (error != std::errc()) throw bad();
  std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  if (type.kind == Kind::datetime || type.kind == Kind::timedelta) {
    type.unit = "generic";
    if (!unit.empty()) {
      if (unit.size() < 3 || unit.front() != '[' || unit.back() != ']') throw bad();
      unit = unit.substr(1, unit.size() - 2);
      std::int32_t multiplier = 1;
      const auto parsed = std::from_chars(unit.data(), unit.data() + unit.size(), multiplier);
      if (parsed.ec == std::errc()) {
        if (multiplier < 1) throw bad();
        type.multiplier = multiplier;
        unit.remove_prefix(static_cast<std::size_t>(parsed.ptr - unit.data()));
      }
      if (!is_time_unit(unit)) throw bad();
      type.unit = unit == "μs" ? "us" : std::string(unit);
    }
  } else if (!unit.empty()) {
    throw bad();
  }
  check_numeric_size(type.kind, size, shown);
  if (type.kind == Kind::unicode) {
    if (size > kMaxItemBytes / 4)
      throw Error(ErrorCode::not_supported, "strings of more than 1 MB are not supported");
    size *= 4;
  }
  if (size == 0)
    throw Error(ErrorCode::not_supported,
                fmt::format("elements of no bytes ('{}') are not supported", shown));
  type.itemsize = size;
  if (size <= 1 && type.kind != Kind::unicode) type.big_endian = false;
  return type;
}

DataType parse_structured(const JsonRef& fields, int depth);

DataType parse_v2_field(const JsonRef& dtype, int depth) {
  if (dtype.is_array()) return parse_structured(dtype, depth);
  const std::string text = dtype.string();
  try {
    return parse_typestr(text, text);
  } catch (const Error& error) {
    throw dtype.error(error.why(), error.code());
  }
}

DataType parse_structured(const JsonRef& fields, int depth) {
  if (depth > kMaxTypeDepth)
    throw fields.error("structured types nested this deep are not supported",
                       ErrorCode::not_supported);
  DataType type;
  type.kind = Kind::structured;
  std::uint64_t offset = 0;
  const std::vector<JsonRef> elements = fields.elements();
  if (elements.empty()) throw fields.error("a structured data type needs fields");
  for (const JsonRef& element : elements) {
    const std::vector<JsonRef> parts = element.elements();
    if (parts.size() < 2 || parts.size() > 3)
      throw element.error("expected [name, type] or [name, type, shape]");
    Field field;
    field.name = parts[0].string();
    field.type = parse_v2_field(parts[1], depth + 1);
    field.offset = static_cast<std::uint32_t>(offset);
    std::uint64_t size = field.type.itemsize;
    if (parts.size() == 3) {
      std::vector<JsonRef> lengths;
      if (parts[2].is_array())
        lengths = parts[2].elements();
      else
        lengths = {parts[2]};
      for (const JsonRef& length : lengths) {
        field.shape.push_back(length.integer(0, kMaxItemBytes));
        size *= static_cast<std::uint64_t>(field.shape.back());
        if (size > kMaxItemBytes)
          throw element.error("fields of more than 1 MB are not supported",
                              ErrorCode::not_supported);
      }
    }
    offset += size;
    if (offset > kMaxItemBytes)
      throw element.error("elements of more than 1 MB are not supported", ErrorCode::not_supported);
    type.fields.push_back(std::move(field));
  }
  if (offset == 0)
    throw fields.error("elements of no bytes are not supported", ErrorCode::not_supported);
  type.itemsize = static_cast<std::uint32_t>(offset);
  return type;
}

}  // namespace

bool is_time_unit(std::string_view unit) {
  static constexpr std::array kUnits = {"Y",  "M",  "W",  "D",  "h",  "m",  "s",
                                        "ms", "us", "μs", "ns", "ps", "fs", "as"};
  return std::find(kUnits.begin(), kUnits.end(), unit) != kUnits.end();
}

std::uint32_t Field::bytes() const {
  std::uint32_t size = type.itemsize;
  for (const std::int64_t length : shape) size *= static_cast<std::uint32_t>(length);
  return size;
}

bool operator==(const DataType& a, const DataType& b) {
  if (a.kind != b.kind || a.itemsize != b.itemsize || a.big_endian != b.big_endian ||
      a.unit != b.unit || a.multiplier != b.multiplier || a.fields.size() != b.fields.size())
    return false;
  for (std::size_t i = 0; i < a.fields.size(); ++i)
    if (a.fields[i].name != b.fields[i].name || !(a.fields[i].type == b.fields[i].type) ||
        a.fields[i].shape != b.fields[i].shape)
      return false;
  return true;
}

std::string DataType::name() const {
  switch (kind) {
    case Kind::boolean:
      return "bool";
    case Kind::signed_int:
      return fmt::format("int{}", itemsize * 8);
    case Kind::unsigned_int:
      return fmt::format("uint{}", itemsize * 8);
    case Kind::floating:
      return fmt::format("float{}", itemsize * 8);
    case Kind::bfloat16:
      return "bfloat16";
    case Kind::complex:
      return fmt::format("complex{}", itemsize * 8);
    case Kind::datetime:
      return "datetime64" + unit_text(*this);
    case Kind::timedelta:
      return "timedelta64" + unit_text(*this);
    case Kind::variable_string:
      return "string";
    case Kind::variable_bytes:
      return "bytes";
    case Kind::structured:
      return npy_descr();
    default:
      return native_typestr(*this);
  }
}

std::string DataType::npy_descr() const {
  if (kind == Kind::bfloat16)
    throw Error(ErrorCode::not_supported,
                "numpy has no bfloat16, so npy, npz and zarr batches have none: use safetensors");
  if (kind != Kind::structured) return quoted(native_typestr(*this));
  std::string text = "[";
  for (const Field& field : fields) {
    text +=
        (text.size() > 1 ? ", " : "") + ("(" + quoted(field.name)) + ", " + field.type.npy_descr();
    if (!field.shape.empty()) {
      text += ", (";
      for (std::int64_t n : field.shape) text += std::to_string(n) + ",";
      text += ")";
    }
    text += ")";
  }
  return text + "]";
}

Json v2_descr(const DataType& type) {
  if (type.kind == Kind::bfloat16)
    throw Error(ErrorCode::not_supported, "Zarr format 2 has no bfloat16");
  if (type.kind != Kind::structured) {
    std::string text = native_typestr(type);
    if (type.big_endian && text[0] == '<') text[0] = '>';
    return text;
  }
  Json descr = Json::array();
  for (const Field& field : type.fields) {
    Json entry = Json::array({field.name, v2_descr(field.type)});
    if (!field.shape.empty()) entry.push_back(field.shape);
    descr.push_back(std::move(entry));
  }
  return descr;
}

DataType make_type(Kind kind, std::uint32_t itemsize) {
  DataType type;
  type.kind = kind;
  type.itemsize = itemsize;
  return type;
}

DataType float32() { return make_type(Kind::floating, 4); }
DataType float64() { return make_type(Kind::floating, 8); }
DataType bfloat16() { return make_type(Kind::bfloat16, 2); }
DataType datetime_ns() {
  DataType type = make_type(Kind::datetime, 8);
  type.unit = "ns";
  return type;
}

DataType parse_numpy_type(const std::string& name) {
  struct Named {
    std::string_view prefix;
    Kind kind;
  };
  static constexpr Named kNamed[] = {{"uint", Kind::unsigned_int},
                                     {"int", Kind::signed_int},
                                     {"float", Kind::floating},
                                     {"complex", Kind::complex}};
  if (name == "bool") return make_type(Kind::boolean, 1);
  for (const Named& named : kNamed) {
    if (!name.starts_with(named.prefix)) continue;
    const auto bits = parse_exact_number(std::string_view(name).substr(named.prefix.size()));
    if (!bits || *bits % 8 != 0 || *bits == 0 || *bits > 128) break;
    check_numeric_size(named.kind, static_cast<std::uint32_t>(*bits / 8), name);
    return make_type(named.kind, static_cast<std::uint32_t>(*bits / 8));
  }
  if (name.starts_with("datetime64")) return parse_typestr("<M8" + name.substr(10), name);
  if (name.starts_with("timedelta64")) return parse_typestr("<m8" + name.substr(11), name);
  const bool has_order =
      !name.empty() && std::string_view("<>|=").find(name[0]) != std::string_view::npos;
  return parse_typestr(has_order ? name : "<" + name, name);
}

DataType parse_v2_type(const JsonRef& dtype, const std::string& object_codec) {
  if (dtype.is_string() && (dtype.string() == "|O" || dtype.string() == "O")) {
    if (object_codec == "vlen-utf8" || object_codec == "json2" || object_codec == "categorize")
      return make_type(Kind::variable_string, 0);
    if (object_codec == "vlen-bytes") return make_type(Kind::variable_bytes, 0);
    throw dtype.error(object_codec.empty()
                          ? "object arrays without an object codec are not supported"
                          : "object arrays coded by '" + object_codec + "' are not supported" +
                                refused_codec_advice(object_codec),
                      ErrorCode::not_supported);
  }
  return parse_v2_field(dtype, 0);
}

}  // namespace batchfs
