#include "engine/dataset/fields.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "engine/base/json.h"
#include "engine/base/utf8.h"

namespace batchfs {

namespace {

/// Metadata that the copies for fields may take together.
constexpr std::uint64_t kMaxCopies = 64 << 20;

constexpr std::string_view kOfNumbers[] = {"_FillValue", "missing_value", "scale_factor",
                                           "add_offset", "_Unsigned",     "units",
                                           "calendar",   "dtype"};

/// The inner codecs of a codec that is a shard; nullptr for others, and for a wrong one, which will
/// be refused.
Json* inner_codecs(const Json& name, Json& configuration) {
  if (name != "sharding_indexed" || !configuration.is_object()) return nullptr;
  const auto codecs = configuration.find("codecs");
  return codecs == configuration.end() || !codecs->is_array() ? nullptr : &*codecs;
}

/// Puts `taking` on the array side of the codecs: inside of shards, so that their chunks are still
/// read one by one.
void take_first(std::vector<CodecSpec>& codecs, const CodecSpec& taking) {
  Json* innermost = nullptr;
  for (CodecSpec& codec : codecs)
    if (Json* list = inner_codecs(codec.name, codec.configuration)) innermost = list;
  for (Json* deeper = innermost; deeper != nullptr;) {
    innermost = deeper;
    deeper = nullptr;
    for (Json& codec : *innermost) {
      if (!codec.is_object()) continue;
      const auto name = codec.find("name"), configuration = codec.find("configuration");
      if (name == codec.end() || configuration == codec.end()) continue;
      if (Json* list = inner_codecs(*name, *configuration)) deeper = list;
    }
  }
  if (innermost == nullptr) {
    codecs.insert(codecs.begin(), taking);
    return;
  }
  Json entry = Json::object();
  entry["name"] = taking.name;
  entry["configuration"] = taking.configuration;
  innermost->insert(innermost->begin(), std::move(entry));
}

std::size_t count_leaves(const DataType& type) {
  std::size_t count = 0;
  for (const Field& field : type.fields)
    count +=
        field.type.kind == Kind::structured && field.shape.empty() ? count_leaves(field.type) : 1;
  return count;
}

/// May a field's name be part of a variable's, which names files of a mount?
bool is_plain_name(const std::string& name) {
  constexpr std::size_t kMaxName = 100;
  return !name.empty() && name.size() <= kMaxName && is_utf8(name) &&
         std::none_of(name.begin(), name.end(),
                      [](unsigned char c) { return c < 0x20 || c == 0x7f || c == '/'; });
}

void add_fields(const std::string& prefix, const ArrayMetadata& array,
                std::vector<std::pair<std::string, ArrayMetadata>>& result) {
  const Json descr = v2_descr(array.type);
  for (const Field& field : array.type.fields) {
    if (!is_plain_name(field.name)) continue;
    const std::string name = prefix + "." + field.name;
    ArrayMetadata own = array;
    own.type = field.type;
    own.type.big_endian = false;
    own.fill_value_json = nullptr;
    for (const std::string_view key : kOfNumbers) own.attributes.erase(std::string(key));
    if (!field.shape.empty()) {
      own.unsupported =
          "a field that holds an array is not supported as a variable; 'batchfs cat' "
          "writes the elements as a whole";
      result.emplace_back(name, std::move(own));
      continue;
    }
    const auto first = array.fill_value.begin() + field.offset;
    own.fill_value.assign(first, first + field.bytes());
    take_first(own.codecs, {"record_member", {{"member", field.name}, {"dtype", descr}}});
    if (field.type.kind == Kind::structured)
      add_fields(name, own, result);
    else
      result.emplace_back(name, std::move(own));
  }
}

}  // namespace

std::vector<std::pair<std::string, ArrayMetadata>> field_variables(const ArrayMetadata& array) {
  std::vector<std::pair<std::string, ArrayMetadata>> result;
  if (array.type.kind != Kind::structured || !array.unsupported.empty()) return result;
  if (array.fill_value.size() != array.type.itemsize) return result;
  const std::size_t leaves = count_leaves(array.type);
  if (leaves > kMaxFieldVariables || memory_of(array) > kMaxCopies / leaves) return result;
  add_fields("", array, result);
  return result;
}

const ArrayMetadata* array_of_field(const Hierarchy& hierarchy, const std::string& path) {
  const std::size_t slash = path.rfind('/'), begin = slash == std::string::npos ? 0 : slash + 1;
  for (std::size_t dot = path.find('.', begin); dot != std::string::npos;
       dot = path.find('.', dot + 1)) {
    std::string array = path.substr(0, dot);
    if (dot == begin) continue;
    if (array == "values" && hierarchy.arrays.contains("")) array.clear();  // the store's one array
    const auto found = hierarchy.arrays.find(array);
    if (found == hierarchy.arrays.end()) continue;
    const auto fields = field_variables(found->second);
    if (std::any_of(fields.begin(), fields.end(), [&](const auto& field) {
          return path.compare(dot, std::string::npos, field.first) == 0;
        }))
      return &found->second;
  }
  return nullptr;
}

}  // namespace batchfs
