#include "engine/zarr/codecs_text.h"

#include "engine/base/json_text.h"
#include "engine/base/printable.h"
#include "engine/base/strings.h"

namespace batchfs {

namespace {

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
  for (const char* key : {"cname", "member", "dtype", "order", "data_type"}) {
    const auto value = codec.configuration.find(key);
    if (value == codec.configuration.end()) continue;
    return codec.name + "(" +
           (value->is_string() ? value->get<std::string>() : json_text(*value, -1)) + ")";
  }
  return codec.name;
}

}  // namespace

std::string codecs_text(const std::vector<CodecSpec>& codecs) {
  std::vector<std::string> parts;
  for (const CodecSpec& codec : codecs) {
    if (codec.name != "bytes") parts.push_back(codec_text(codec));
  }
  return parts.empty() ? "none" : printable(join(parts, ", "));
}

}  // namespace batchfs
