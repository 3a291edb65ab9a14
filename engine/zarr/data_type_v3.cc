// v3 data types. Sources: v3 core, "Data types"; zarr-extensions registry; for `structured`, the
// name before `struct`, zarr-python.

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/zarr/data_type.h"

namespace batchfs {

namespace {

/// The `length_bytes` of the extension types of fixed length.
std::uint32_t parse_length(const JsonRef& configuration) {
  const JsonRef length = configuration.at("length_bytes");
  const std::int64_t bytes = length.integer(0, kMaxItemBytes);
  if (bytes == 0)
    throw length.error("elements of no bytes are not supported", ErrorCode::not_supported);
  return static_cast<std::uint32_t>(bytes);
}

DataType parse_type(const JsonRef& data_type, int depth);

/// Fields as {"name": ..., "data_type": ...}, or as zarr-python writes them, [name, data_type].
DataType parse_struct(const JsonRef& configuration, int depth) {
  const JsonRef list = configuration.at("fields");
  if (depth >= kMaxTypeDepth)
    throw list.error("structured types nested this deep are not supported",
                     ErrorCode::not_supported);
  DataType type = make_type(Kind::structured, 0);
  std::set<std::string> names;
  for (const JsonRef& json : list.elements()) {
    std::vector<JsonRef> parts;
    if (json.is_array()) {
      parts = json.elements();
      if (parts.size() != 2) throw json.error("expected [name, data_type]");
    } else {
      parts = {json.at("name"), json.at("data_type")};
    }
    Field field;
    field.name = parts[0].string();
    if (!names.insert(field.name).second)
      throw parts[0].error(fmt::format("the field '{}' is there twice", field.name));
    field.type = parse_type(parts[1], depth + 1);
    if (field.type.is_variable())
      throw parts[1].error("fields of any length are not supported", ErrorCode::not_supported);
    field.offset = type.itemsize;
    type.itemsize += field.type.itemsize;
    if (type.itemsize > kMaxItemBytes)
      throw json.error("elements of more than 1 MB are not supported", ErrorCode::not_supported);
    type.fields.push_back(std::move(field));
  }
  if (type.fields.empty()) throw list.error("a structured data type needs fields");
  return type;
}

DataType parse_type(const JsonRef& data_type, int depth) {
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
        bits && *bits % 8 == 0 && *bits > 0 && *bits / 8 <= kMaxItemBytes)
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
  if (name == "struct" || name == "structured") return parse_struct(config, depth);
  if (name == "string" || name == "str") return make_type(Kind::variable_string, 0);
  if (name == "variable_length_bytes" || name == "bytes") return make_type(Kind::variable_bytes, 0);
  throw data_type.error(fmt::format("the data type '{}' is not supported", name),
                        ErrorCode::not_supported);
}

}  // namespace

DataType parse_v3_type(const JsonRef& data_type) { return parse_type(data_type, 0); }

}  // namespace batchfs
