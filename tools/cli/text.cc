#include "tools/cli/text.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/strings.h"

namespace batchfs {

namespace {

/// Columns that a UTF-8 text takes, to the precision that names of arrays need.
std::size_t columns(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

/// v3 names a codec by an object or, for short, by its name alone.
std::string name_of(const Json& codec) {
  if (codec.is_string()) return codec.get<std::string>();
  const auto name = codec.is_object() ? codec.find("name") : codec.end();
  return name != codec.end() && name->is_string() ? name->get<std::string>() : std::string();
}

std::string codec_text(const CodecSpec& codec) {
  if (codec.name == "sharding_indexed") {
    std::vector<std::string> inner;
    const auto codecs = codec.configuration.find("codecs");
    if (codecs != codec.configuration.end() && codecs->is_array()) {
      for (const Json& one : *codecs) {
        const std::string name = name_of(one);
        if (!name.empty() && name != "bytes") inner.push_back(name);
      }
    }
    return "sharding(" + join(inner, ", ") + ")";
  }
  for (const char* key : {"cname", "dtype", "order"}) {
    const auto value = codec.configuration.find(key);
    if (value == codec.configuration.end()) continue;
    return codec.name + "(" +
           (value->is_string() ? value->get<std::string>() : json_text(*value, -1)) + ")";
  }
  return codec.name;
}

}  // namespace

std::string Table::text(std::size_t indent) const {
  std::vector<std::size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns(row[i]));
  }
  std::string out;
  for (const auto& row : rows_) {
    std::string line(indent, ' ');
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      line.append(widths[i] - columns(row[i]) + 2, ' ');
    }
    line.resize(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string shape_text(const Dims& shape) {
  if (shape.empty()) return "scalar";
  std::vector<std::string> parts;
  for (const std::int64_t n : shape) parts.push_back(std::to_string(n));
  return join(parts, " x ");
}

std::string codecs_text(const std::vector<CodecSpec>& codecs) {
  std::vector<std::string> parts;
  for (const CodecSpec& codec : codecs) {
    if (codec.name != "bytes") parts.push_back(codec_text(codec));
  }
  return parts.empty() ? "none" : printable(join(parts, ", "));
}

std::string estimated_size(double bytes) { return format_size(static_cast<std::uint64_t>(bytes)); }

std::string percent_text(double share) { return fmt::format("{:.0f} %", 100 * share); }

Json shape_json(const Dims& shape) {
  return Json(std::vector<std::int64_t>(shape.begin(), shape.end()));
}

}  // namespace batchfs
