#include "engine/zarr/named_nodes.h"

#include <algorithm>
#include <deque>
#include <set>

#include <fmt/format.h>

#include "engine/base/json_limits.h"
#include "engine/base/limits.h"
#include "engine/base/strings.h"
#include "engine/store/fingerprint.h"
#include "engine/zarr/document_reader.h"
#include "engine/zarr/metadata_memory.h"
#include "engine/zarr/node_path.h"
#include "engine/zarr/ome/read_ome.h"

namespace batchfs {

namespace {

constexpr std::size_t kMaxAsked = 512;
/// Paths whose documents are requested at once.
constexpr std::size_t kAtOnce = 32;
/// Members of a collection that are tried, from the first.
constexpr std::size_t kMaxTried = 8;

bool is_node_path(const std::string& path) {
  if (path.empty() || path.size() > kMaxNodePath) return false;
  const std::vector<std::string> parts = split(path, '/');
  return std::ssize(parts) <= kMaxNodeDepth &&
         std::all_of(parts.begin(), parts.end(),
                     [](const std::string& part) { return is_file_name(part); });
}

class Finder {
 public:
  Finder(Store& store, Hierarchy& hierarchy, std::uint64_t memory)
      : hierarchy_(hierarchy),
        memory_(std::max(memory, kFreeMetadata)),
        reader_(store, (memory_.claim(hierarchy.memory), memory_)) {}

  void find(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) ask(path);
    if (paths.empty())  // else they were requested before
      for (const auto& [path, group] : hierarchy_.groups) ask_for_members(group);
    while (!queue_.empty()) {
      std::vector<std::string> round;
      for (; !queue_.empty() && round.size() < kAtOnce; queue_.pop_front())
        round.push_back(std::move(queue_.front()));
      for (const std::string& path : round)
        for (const char* document : documents()) reader_.ask_ahead(join_path(path, document));
      for (const std::string& path : round) guarded(path, [&] { add(path); });
    }
    for (const auto& note : reader_.notes().repaired) hierarchy_.notes.push_back(note);
    if (!found_) return;
    read_ome(hierarchy_, memory_);
    const std::string both = hierarchy_.snapshot_id + reader_.digest();
    hierarchy_.snapshot_id = fingerprint(both);
    hierarchy_.memory = memory_.used();
  }

 private:
  std::vector<const char*> documents() const {
    if (hierarchy_.zarr_format == 3) return {"zarr.json"};
    return {".zarray", ".zgroup", ".zattrs"};
  }

  void ask(const std::string& path) {
    if (!is_node_path(path) || asked_.size() == kMaxAsked) return;
    const auto group = hierarchy_.groups.find(path);
    if (hierarchy_.arrays.contains(path) ||
        (group != hierarchy_.groups.end() && !group->second.implicit))
      return;
    for (std::size_t slash = path.find('/'); slash != std::string::npos;
         slash = path.find('/', slash + 1))
      if (hierarchy_.arrays.contains(path.substr(0, slash))) return;  // it has chunks below
    if (asked_.insert(path).second) queue_.push_back(path);
  }

  template <class Body>
  void guarded(const std::string& path, Body&& body) {
    try {
      body();
    } catch (const Error& error) {
      if (error.code() == ErrorCode::io || error.code() == ErrorCode::timed_out ||
          error.code() == ErrorCode::no_memory)
        throw;
      std::string key = join_path(path, documents().front());
      // Another document of the node may be at fault.
      const bool is_here = error.where().empty() || error.where().ends_with(key);
      std::string why = short_reason(is_here ? error.why() : error.what());
      memory_.claim(2 * sizeof why + path.size() + why.size());
      hierarchy_.problems.emplace_back(std::move(key), std::move(why));
    }
  }

  void add(const std::string& path) {
    if (hierarchy_.zarr_format == 3) {
      const std::string key = join_path(path, "zarr.json");
      if (auto document = reader_.probe(key)) add_v3(path, *std::move(document), key);
      return;
    }
    auto array = reader_.probe(join_path(path, ".zarray"));
    const auto group = reader_.probe(join_path(path, ".zgroup"));
    auto attributes = reader_.probe(join_path(path, ".zattrs"));
    if (!attributes) attributes = Json::object();
    if (array)
      add_array(parse_array_v2(path, *std::move(array), *std::move(attributes),
                               join_path(path, ".zarray")));
    else if (group)
      add_group({path, *std::move(attributes)}, ".zattrs");
  }

  void add_v3(const std::string& path, Json document, const std::string& key) {
    const JsonRef root(document, "");
    const std::string type = root.at("node_type").string();
    if (type == "array") return add_array(parse_array_v3(path, std::move(document), key));
    if (type != "group") throw root.at("node_type").error("expected \"array\" or \"group\"");
    const auto attributes = root.find("attributes");
    add_group({path, attributes && !attributes->is_null() ? attributes->value() : Json::object()},
              "attributes");
  }

  void add_array(ArrayMetadata array) {
    array.source = join_path(array.path, array.zarr_format == 3 ? "zarr.json" : ".zarray");
    memory_.claim(memory_of(array));
    const std::string group = parent_group(array.path);
    add_parents(array.path);
    ask(group);  // it may be an image, whose metadata defines the array's dimensions
    for (const std::string& name : coordinates_of(array)) ask(join_path(group, name));
    found_ = true;
    hierarchy_.arrays.insert_or_assign(array.path, std::move(array));
  }

  void add_group(Group group, const char* where) {
    if (!group.attributes.is_object())
      throw JsonRef(group.attributes, where).error("expected an object");
    memory_.claim(sizeof group + group.path.size() + json_memory(group.attributes));
    add_parents(group.path);
    found_ = true;
    const auto [added, is_new] = hierarchy_.groups.insert_or_assign(group.path, group);
    ask_for_members(added->second);
  }

  void add_parents(std::string path) {
    while (!path.empty()) {
      path = parent_group(path);
      hierarchy_.groups.try_emplace(path, Group{path, Json::object(), true});
    }
  }

  /// Names in the group of the array.
  static std::vector<std::string> coordinates_of(const ArrayMetadata& array) {
    std::vector<std::string> names;
    for (const auto& name : array.dimension_names)
      if (name) names.push_back(*name);
    if (const auto dims = array.attributes.find("_ARRAY_DIMENSIONS");
        dims != array.attributes.end() && dims->is_array() && dims->size() == array.shape.size())
      for (const Json& dim : *dims)
        if (dim.is_string()) names.push_back(dim.get<std::string>());
    if (const auto others = array.attributes.find("coordinates");
        others != array.attributes.end() && others->is_string())
      for (std::string& name : split(others->get<std::string>(), ' '))
        names.push_back(std::move(name));
    return names;
  }

  /// Requests the nodes that a group's metadata names. read_ome() reports faulty metadata.
  void ask_for_members(const Group& group) {
    try {
      const auto document = find_ome(group.attributes, group.path);
      if (!document) return;
      if (document->members.value().contains("multiscales")) {
        for (const OmeImage::Level& level : parse_image(*document, group.path).levels)
          ask(level.path);
        const bool is_label = group.path.find("labels/") != std::string::npos;
        if (!is_label) ask(join_path(group.path, "labels"));
      } else if (const auto collection = parse_collection(*document, group.path)) {
        ask_for_members(*collection, group.path);
      }
    } catch (const Error& error) {
      if (error.code() == ErrorCode::no_memory) throw;
    }
  }

  void ask_for_members(const OmeCollection& collection, const std::string& group) {
    using Type = OmeCollection::Type;
    const std::size_t most = collection.type == Type::plate ? 1 : kMaxTried;
    for (std::size_t i = 0; i < std::min(most, collection.paths.size()); ++i)
      ask(collection.paths[i]);
    if (collection.type != Type::series || !collection.paths.empty()) return;
    ask(join_path(group, "OME"));
    for (std::size_t i = 0; i < kMaxTried; ++i) ask(join_path(group, std::to_string(i)));
  }

  Hierarchy& hierarchy_;
  MetadataMemory memory_;
  DocumentReader reader_;
  std::set<std::string> asked_;
  std::deque<std::string> queue_;
  bool found_ = false;
};

}  // namespace

void find_nodes(Store& store, Hierarchy& hierarchy, const std::vector<std::string>& paths,
                std::uint64_t memory) {
  if (!hierarchy.complete) Finder(store, hierarchy, memory).find(paths);
}

}  // namespace batchfs
