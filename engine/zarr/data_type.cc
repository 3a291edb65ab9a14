#include "engine/zarr/data_type.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "engine/base/strings.h"

namespace batchfs {

namespace {

constexpr std::uint32_t kMaxItem = 1 << 20;

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

/// As a Python literal.
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

bool is_time_unit(std::string_view unit) {
  static constexpr std::array kUnits = {"Y",  "M",  "W",  "D",  "h",  "m",  "s",
                                        "ms", "us", "μs", "ns", "ps", "fs", "as"};
  return std::find(kUnits.begin(), kUnits.end(), unit) != kUnits.end();
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
      ok = size <= kMaxItem;
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
    if (size > kMaxItem / 4)
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
  if (depth > 16)
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
        field.shape.push_back(length.integer(0, kMaxItem));
        size *= static_cast<std::uint64_t>(field.shape.back());
        if (size > kMaxItem)
          throw element.error("fields of more than 1 MB are not supported",
                              ErrorCode::not_supported);
      }
    }
    offset += size;
    if (offset > kMaxItem)
      throw element.error("elements of more than 1 MB are not supported", ErrorCode::not_supported);
    type.fields.push_back(std::move(field));
  }
  if (offset == 0)
    throw fields.error("elements of no bytes are not supported", ErrorCode::not_supported);
  type.itemsize = static_cast<std::uint32_t>(offset);
  return type;
}

/// The `length_bytes` of the extension types of fixed length.
std::uint32_t parse_length(const JsonRef& configuration) {
  const JsonRef length = configuration.at("length_bytes");
  const std::int64_t bytes = length.integer(0, kMaxItem);
  if (bytes == 0)
    throw length.error("elements of no bytes are not supported", ErrorCode::not_supported);
  return static_cast<std::uint32_t>(bytes);
}

}  // namespace

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
    if (object_codec == "vlen-utf8") return make_type(Kind::variable_string, 0);
    if (object_codec == "vlen-bytes") return make_type(Kind::variable_bytes, 0);
    throw dtype.error(object_codec.empty()
                          ? "object arrays without an object codec are not supported"
                          : "object arrays coded by '" + object_codec + "' are not supported",
                      ErrorCode::not_supported);
  }
  return parse_v2_field(dtype, 0);
}

DataType parse_v3_type(const JsonRef& data_type) {
  std::string name;
  Json configuration = Json::object();
  if (data_type.is_string()) {
    name = data_type.string();
  } else {
    name = data_type.at("name").string();
    if (const auto found = data_type.find("configuration")) configuration = found->value();
  }
  const JsonRef config(configuration, data_type.path() + ".configuration");
  static constexpr std::string_view kCore[] = {
      "bool",   "int8",   "int16",   "int32",   "int64",   "uint8",     "uint16",
      "uint32", "uint64", "float16", "float32", "float64", "complex64", "complex128"};
  if (std::find(std::begin(kCore), std::end(kCore), name) != std::end(kCore))
    return parse_numpy_type(name);
  if (name.size() > 1 && name[0] == 'r') {
    if (const auto bits = parse_exact_number(name.substr(1));
        bits && *bits % 8 == 0 && *bits > 0 && *bits / 8 <= kMaxItem)
      return make_type(Kind::raw, static_cast<std::uint32_t>(*bits / 8));
  }
  if (name == "numpy.datetime64" || name == "numpy.timedelta64") {
    DataType type = make_type(name == "numpy.datetime64" ? Kind::datetime : Kind::timedelta, 8);
    type.unit = config.at("unit").string();
    type.multiplier = static_cast<std::int32_t>(config.at("scale_factor").integer(1, INT32_MAX));
    if (type.unit != "generic" && !is_time_unit(type.unit))
      throw config.at("unit").error("unknown time unit");
    if (type.unit == "μs") type.unit = "us";
    return type;
  }
  if (name == "fixed_length_utf32") {
    const std::uint32_t length = parse_length(config);
    if (length % 4 != 0) throw config.at("length_bytes").error("not a multiple of 4");
    return make_type(Kind::unicode, length);
  }
  if (name == "null_terminated_bytes") return make_type(Kind::bytes, parse_length(config));
  if (name == "raw_bytes") return make_type(Kind::raw, parse_length(config));
  if (name == "string" || name == "str") return make_type(Kind::variable_string, 0);
  if (name == "variable_length_bytes" || name == "bytes") return make_type(Kind::variable_bytes, 0);
  throw data_type.error(fmt::format("the data type '{}' is not supported", name),
                        ErrorCode::not_supported);
}

void swap_bytes(const DataType& type, std::byte* data, std::size_t elements) {
  auto swap_words = [](std::byte* p, std::size_t words, std::size_t size) {
    switch (size) {
      case 2:
        for (std::size_t i = 0; i < words; ++i) std::swap(p[2 * i], p[2 * i + 1]);
        return;
      case 4:
        for (std::size_t i = 0; i < words; ++i) {
          std::uint32_t v;
          __builtin_memcpy(&v, p + 4 * i, 4);
          v = __builtin_bswap32(v);
          __builtin_memcpy(p + 4 * i, &v, 4);
        }
        return;
      case 8:
        for (std::size_t i = 0; i < words; ++i) {
          std::uint64_t v;
          __builtin_memcpy(&v, p + 8 * i, 8);
          v = __builtin_bswap64(v);
          __builtin_memcpy(p + 8 * i, &v, 8);
        }
        return;
      default:
        return;
    }
  };
  switch (type.kind) {
    case Kind::bytes:
    case Kind::raw:
    case Kind::boolean:
      return;
    case Kind::unicode:
      return swap_words(data, elements * (type.itemsize / 4), 4);
    case Kind::complex:
      return swap_words(data, elements * 2, type.itemsize / 2);
    case Kind::structured:
      for (std::size_t i = 0; i < elements; ++i)
        for (const Field& field : type.fields) {
          if (!field.type.big_endian && field.type.kind != Kind::structured) continue;
          std::size_t count = 1;
          for (std::int64_t n : field.shape) count *= static_cast<std::size_t>(n);
          swap_bytes(field.type, data + i * type.itemsize + field.offset, count);
        }
      return;
    default:
      return swap_words(data, elements, type.itemsize);
  }
}

}  // namespace batchfs
