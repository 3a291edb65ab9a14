#include "engine/write/output_metadata.h"

#include <map>

#include "engine/base/json_text.h"
#include "engine/write/rechunk_arrays.h"
#include "engine/zarr/node_path.h"

namespace batchfs {

namespace {

using Attributes = std::map<std::string, Json>;  // by path in the output

/// The root and the groups above the arrays.
Attributes groups_above(const std::vector<const OutputArray*>& arrays, const Hierarchy& source,
                        const std::string& group) {
  Attributes groups;
  const auto add = [&](const std::string& path) {
    const auto found = source.groups.find(path.empty() ? group : join_path(group, path));
    groups[path] = found == source.groups.end() ? Json::object() : found->second.attributes;
  };
  add("");
  for (const OutputArray* array : arrays)
    for (std::string path = parent_group(array->path); !path.empty(); path = parent_group(path))
      add(path);
  return groups;
}

void put_document(OutputStore& output, const std::string& key, const Json& document) {
  output.put(key, python_json_text(document) + "\n");
}

void put_v3(OutputStore& output, const std::vector<const OutputArray*>& arrays,
            const Attributes& groups) {
  Json nodes = Json::object();
  for (const auto& [path, attributes] : groups) {
    if (path.empty()) continue;
    const Json document = group_document_v3(attributes);
    put_document(output, join_path(path, "zarr.json"), document);
    nodes[path] = document;
  }
  for (const OutputArray* array : arrays) {
    put_document(output, join_path(array->path, "zarr.json"), array->document);
    nodes[array->path] = array->document;
  }
  Json root = group_document_v3(groups.at(""));
  root["consolidated_metadata"] = {
      {"kind", "inline"}, {"must_understand", false}, {"metadata", std::move(nodes)}};
  output.sync();
  put_document(output, last_key(3, false), root);
}

void put_v2(OutputStore& output, const std::vector<const OutputArray*>& arrays,
            const Attributes& groups) {
  Json nodes = Json::object();
  const Json group = {{"zarr_format", 2}};
  const auto put = [&](const std::string& path, const char* name, const Json& document) {
    const std::string key = join_path(path, name);
    put_document(output, key, document);
    nodes[key] = document;
  };
  for (const OutputArray* array : arrays) {
    put(array->path, ".zattrs", array->attributes);
    put(array->path, ".zarray", array->document);
  }
  for (const auto& [path, attributes] : groups) {
    put(path, ".zattrs", attributes);
    put(path, ".zgroup", group);
  }
  output.sync();
  put_document(output, last_key(2, false),
               {{"metadata", std::move(nodes)}, {"zarr_consolidated_format", 1}});
}

}  // namespace

std::string last_key(int format, bool is_array) {
  if (format == 3) return "zarr.json";
  return is_array ? ".zarray" : ".zmetadata";
}

void put_metadata(OutputStore& output, int format, const std::vector<const OutputArray*>& arrays,
                  const Hierarchy& source, const std::string& group) {
  output.sync();
  if (arrays.size() == 1 && arrays[0]->path.empty()) {
    if (format == 2) put_document(output, ".zattrs", arrays[0]->attributes);
    put_document(output, last_key(format, true), arrays[0]->document);
  } else if (format == 3) {
    put_v3(output, arrays, groups_above(arrays, source, group));
  } else {
    put_v2(output, arrays, groups_above(arrays, source, group));
  }
  output.sync();
}

}  // namespace batchfs
