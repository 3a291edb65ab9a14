#include "engine/zarr/hierarchy.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "engine/base/json_limits.h"
#include "engine/base/limits.h"
#include "engine/base/strings.h"
#include "engine/store/icechunk/repository.h"
#include "engine/store/icechunk/signs.h"
#include "engine/store/meant_document.h"
#include "engine/store/store_kind.h"
#include "engine/zarr/document_reader.h"
#include "engine/zarr/metadata_memory.h"
#include "engine/zarr/named_nodes.h"
#include "engine/zarr/node_path.h"
#include "engine/zarr/ome/read_ome.h"
#include "engine/zarr/other_kinds.h"
#include "engine/zarr/unread_documents.h"

namespace batchfs {

namespace {

/// Memory of a node of the maps beside its contents.
constexpr std::uint64_t kNodeMemory = 96;

/// Throws invalid_argument, not_supported.
void check_node_path(const std::string& path) {
  if (path.empty()) return;
  if (path.size() > kMaxNodePath)
    throw Error(
        ErrorCode::not_supported,
        fmt::format("the path has {} bytes; at most {} are supported", path.size(), kMaxNodePath));
  if (std::count(path.begin(), path.end(), '/') >= kMaxNodeDepth)
    throw Error(ErrorCode::not_supported,
                fmt::format("the path has more than {} levels", kMaxNodeDepth));
  const std::vector<std::string> parts = split(path, '/');
  if (!std::all_of(parts.begin(), parts.end(),
                   [](const std::string& p) { return is_file_name(p); }))
    throw Error(ErrorCode::invalid_argument, "not a usable name");
}

class Opener {
 public:
  Opener(Store& store, std::uint64_t memory, RepositorySigns& signs)
      : store_(store),
        signs_(signs),
        memory_(std::max(memory, kFreeMetadata)),
        reader_(store, memory_) {}

  Hierarchy open() {
    if (!store_.is_local() && !store_.revision()) ask_ahead();
    if (!open_root_v3()) open_v2();
    for (const auto& [key, why] : reader_.notes().left_out) add_problem(key, why);
    result_.notes = reader_.notes().repaired;
    if (result_.groups.empty() && result_.arrays.empty()) refuse();
    drop_what_is_below_arrays();
    add_implicit_groups();
    for (auto& [path, array] : result_.arrays)
      array.source = !result_.consolidated
                         ? join_path(path, array.zarr_format == 3 ? "zarr.json" : ".zarray")
                     : result_.zarr_format == 3 ? "zarr.json"
                                                : ".zmetadata";
    read_ome(result_, memory_);
    result_.revision = store_.revision();
    result_.snapshot_id = first_nonempty({result_.revision ? result_.revision->id : std::string(),
                                          store_.content_id(), reader_.digest()});
    result_.memory = memory_.used();
    return std::move(result_);
  }

 private:
  /// Requests all keys that identify the kind of a remote store, in one round trip.
  void ask_ahead() {
    for (const char* key : {"zarr.json", ".zmetadata", kMainBranch}) reader_.ask_ahead(key);
    reader_.ask_head_ahead(kRepositoryEntry, kSignBytes);
    if (store_.can_list()) return;
    for (const char* key : {".zarray", ".zattrs", ".zgroup"}) reader_.ask_ahead(key);
  }

  /// For a remote store; the others are listed.
  bool is_repository() {
    signs_.entry = reader_.answer(kRepositoryEntry);
    signs_.main_branch = reader_.answer(kMainBranch);
    return icechunk::is_repository(signs_);
  }

  [[noreturn]] void refuse() {
    if (reader_.refusal()) throw *reader_.refusal();
    if (!result_.problems.empty())
      throw Error(ErrorCode::corrupt, result_.problems.front().second,
                  result_.problems.front().first);
    const auto kind =
        store_.can_list() ? kind_by_listing(store_.list("")) : kind_by_probing(store_, reader_);
    if (kind) throw unread_kind(*kind, store_.url());
    throw Error(ErrorCode::not_found,
                "not a Zarr store: no zarr.json, .zgroup, .zarray or .zmetadata here or below",
                store_.url());
  }

  /// Runs `body`; an error in one node is a problem of that node, not of the store.
  template <class Body>
  void guarded(const std::string& key, Body&& body) {
    try {
      body();
    } catch (const Error& error) {
      const ErrorCode code = error.code();
      if (code == ErrorCode::io || code == ErrorCode::timed_out || code == ErrorCode::no_memory)
        throw;
      // Another document of the node may be at fault.
      const bool is_here = error.where().empty() || error.where().ends_with(key);
      add_problem(key, is_here ? error.why() : error.what());
    }
  }

  void add_problem(std::string key, std::string why) {
    for (std::string* text : {&key, &why}) *text = short_reason(std::move(*text));
    memory_.claim(2 * sizeof key + key.size() + why.size() + kNodeMemory);
    result_.problems.emplace_back(std::move(key), std::move(why));
  }

  void add_array(const std::string& path, ArrayMetadata array) {
    memory_.claim(memory_of(array) + path.size() + kNodeMemory);
    result_.arrays.insert_or_assign(path, std::move(array));
  }

  void add_group(Group group) {
    memory_.claim(sizeof group + 2 * group.path.size() + json_memory(group.attributes) +
                  kNodeMemory);
    result_.groups.insert_or_assign(group.path, std::move(group));
  }

  // ---- v3 ----
  bool open_root_v3() {
    try {
      auto root = reader_.probe("zarr.json");
      if (root) open_v3(std::move(*root));
      return root.has_value();
    } catch (const Error& error) {
      if (is_broken(error)) throw broken_root(store_, error);
      throw;
    }
  }

  void open_v3(Json root) {
    result_.zarr_format = 3;
    Passing passing(memory_, json_memory(root));
    const JsonRef ref(root, "");
    const auto format = ref.find("zarr_format");
    const bool pre_final =
        (format && !format->is_number()) || (!format && ref.find("metadata_encoding"));
    if (pre_final)
      throw Error(ErrorCode::not_supported,
                  "Zarr v3 from before the final specification is not supported", "zarr.json");
    if (ref.at("node_type").string() == "array") {
      passing.shrink(UINT64_MAX);
      add_array("", parse_array_v3("", std::move(root), "zarr.json"));
      return;
    }
    try {
      add_group_v3("", root);
    } catch (Error& error) {
      throw error.at("zarr.json");
    }
    if (Json* const nodes = consolidated_nodes(root)) {
      result_.consolidated = true;
      for (auto& [path, node] : nodes->get_ref<Json::object_t&>()) {
        if (path.empty()) {
          add_problem("zarr.json", "consolidated metadata of a node without a name");
          continue;
        }
        passing.shrink(json_memory(node));
        add_node_v3(path, std::move(node));
      }
      return;
    }
    if (store_.can_list())
      walk("", false);
    else
      result_.complete = false;
  }

  /// null: there are none.
  static Json* consolidated_nodes(Json& root) {
    const auto consolidated = root.find("consolidated_metadata");
    if (consolidated == root.end() || !consolidated->is_object()) return nullptr;
    const auto metadata = consolidated->find("metadata");
    if (metadata == consolidated->end()) return nullptr;
    if (!metadata->is_object())
      throw JsonRef(*metadata, "consolidated_metadata.metadata").error("expected an object");
    return &*metadata;
  }

  void add_group_v3(const std::string& path, const Json& document) {
    const JsonRef root(document, "");
    if (root.at("node_type").string() != "group")
      throw root.at("node_type").error("expected \"array\" or \"group\"");
    if (root.at("zarr_format").integer() != 3) throw root.at("zarr_format").error("expected 3");
    const auto attributes = root.find("attributes");
    add_group({path, attributes && !attributes->is_null() ? checked_attributes(*attributes)
                                                          : Json::object()});
  }

  static const Json& checked_attributes(const JsonRef& attributes) {
    if (!attributes.is_object()) throw attributes.error("expected an object");
    return attributes.value();
  }

  bool add_node_v3(const std::string& path, Json document) {
    bool is_array = false;
    const std::string key = join_path(path, "zarr.json");
    guarded(key, [&] {
      check_node_path(path);
      if (JsonRef(document, "").at("node_type").string() == "array") {
        is_array = true;
        add_array(path, parse_array_v3(path, std::move(document), key));
      } else {
        add_group_v3(path, document);
      }
    });
    return is_array;
  }

  // ---- v2, or documents of both formats below the root ----
  void open_v2() {
    if (auto consolidated = reader_.probe(".zmetadata"))
      open_consolidated_v2(std::move(*consolidated));
    else if (is_repository())
      throw unread_kind(StoreKind::icechunk, store_.url());
    else if (store_.can_list())
      walk("", true);
    else
      open_root_v2();
  }

  void open_consolidated_v2(Json consolidated) {
    result_.consolidated = true;
    Passing passing(memory_, json_memory(consolidated));
    const JsonRef root(consolidated, ".zmetadata");
    if (root.find("record_size")) throw unread_kind(StoreKind::kerchunk_parquet, store_.url());
    if (!root.at("metadata").is_object()) throw root.at("metadata").error("expected an object");
    auto& metadata = consolidated["metadata"].get_ref<Json::object_t&>();
    const std::map<std::string, std::string> unread = unread_documents(metadata);
    for (const auto& [document, why] : unread) add_problem(document, why);
    const Passing index(memory_, metadata.size() * (sizeof(std::string_view) + kNodeMemory));
    std::map<std::string_view, Json*> attributes;  // by path
    const auto parent_of = [](std::string_view key,
                              std::string_view name) -> std::optional<std::string_view> {
      if (key == name) return std::string_view();
      if (!key.ends_with(name) || key[key.size() - name.size() - 1] != '/') return std::nullopt;
      return key.substr(0, key.size() - name.size() - 1);
    };
    for (auto& [key, value] : metadata)
      if (const auto path = parent_of(key, ".zattrs")) attributes[*path] = &value;
    // Each node's attributes are taken over: an array and a group at one path are an array.
    const auto take_attributes = [&](std::string_view path) {
      const auto it = attributes.find(path);
      if (it == attributes.end()) {
        const auto lost = unread.find(join_path(std::string(path), ".zattrs"));
        if (lost == unread.end()) return Json(Json::object());
        throw Error(ErrorCode::corrupt, "its .zattrs: " + lost->second);
      }
      passing.shrink(json_memory(*it->second));
      return std::exchange(*it->second, Json::object());
    };
    for (auto& [key, document] : metadata)
      guarded(key, [&, &key_name = key, &value = document] {
        const auto path = parent_of(key_name, ".zarray");
        if (!path || meant_document(key_name)) return;
        check_node_path(std::string(*path));
        passing.shrink(json_memory(value));
        add_array(std::string(*path), parse_array_v2(std::string(*path), std::move(value),
                                                     take_attributes(*path), key_name));
      });
    for (auto& [key, document] : metadata)
      guarded(key, [&, &key_name = key] {
        const auto path = parent_of(key_name, ".zgroup");
        if (!path || meant_document(key_name)) return;
        check_node_path(std::string(*path));
        const Json own = take_attributes(*path);
        add_group(Group{std::string(*path), checked_attributes(JsonRef(own, ".zattrs"))});
      });
  }

  // ---- without listing ----
  void open_root_v2() {
    if (const auto array = reader_.probe(".zarray")) {
      Json attributes = reader_.probe(".zattrs").value_or(Json::object());
      add_array("", parse_array_v2("", *array, std::move(attributes), ".zarray"));
    } else if (reader_.probe(".zgroup")) {
      const Json attributes = reader_.probe(".zattrs").value_or(Json::object());
      add_group({"", checked_attributes(JsonRef(attributes, ".zattrs"))});
      result_.complete = false;
    }
  }

  // ---- listing ----
  static bool has(const std::vector<Store::Entry>& entries, std::string_view name) {
    return std::any_of(entries.begin(), entries.end(),
                       [name](const Store::Entry& entry) { return entry.name == name; });
  }

  /// The entries of a directory that matter: below the root documents and directories. One with
  /// more entries than are listed may be an array with its chunks: its documents are looked for by
  /// name, and no directories are found.
  std::vector<Store::Entry> list(const std::string& path) {
    std::vector<Store::Entry> entries;
    std::optional<Error> too_long;
    try {
      entries = store_.list(path);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::no_memory) throw;
      too_long = error;
    }
    static constexpr const char* kDocuments[] = {"zarr.json", ".zarray", ".zgroup", ".zattrs"};
    if (too_long) {
      for (const char* name : kDocuments)
        if (store_.size(join_path(path, name))) entries.push_back({name, false});
      if (!has(entries, ".zarray") && !has(entries, "zarr.json"))
        throw Error(ErrorCode::not_supported, too_long->why(), too_long->where());
      return entries;
    }
    if (path.empty()) return entries;  // its other names may identify another kind of store
    std::erase_if(entries, [](const Store::Entry& entry) {
      return !entry.is_prefix && std::find(std::begin(kDocuments), std::end(kDocuments),
                                           entry.name) == std::end(kDocuments);
    });
    entries.shrink_to_fit();
    return entries;
  }

  /// Reads the node at `path` and, unless it is an array, the nodes below it.
  void walk(const std::string& path, bool is_root) {
    std::vector<Store::Entry> entries;
    guarded(path, [&] { entries = list(path); });
    // Before the directories of another kind of store are listed: they may be huge.
    if (is_root && !has(entries, "zarr.json") && !has(entries, ".zarray") &&
        !has(entries, ".zgroup") && kind_by_listing(entries) == StoreKind::icechunk)
      throw unread_kind(StoreKind::icechunk, store_.url());
    bool is_array = false;
    if (has(entries, "zarr.json") && !(is_root == false && path.empty())) {
      const std::string key = join_path(path, "zarr.json");
      guarded(key, [&] {
        try {
          if (auto document = reader_.document(key))
            is_array = add_node_v3(path, std::move(*document));
        } catch (const Error& error) {
          for (const char* name : {".zarray", ".zgroup"})
            if (is_broken(error) && has(entries, name)) throw broken_beside(error, name);
          throw;
        }
      });
    } else if (has(entries, ".zarray")) {
      is_array = true;
      const std::string key = join_path(path, ".zarray");
      guarded(key, [&] {
        Json attributes = Json::object();
        if (has(entries, ".zattrs"))
          attributes = reader_.document(join_path(path, ".zattrs")).value_or(attributes);
        if (auto document = reader_.document(key))
          add_array(path, parse_array_v2(path, std::move(*document), std::move(attributes), key));
      });
    } else if (has(entries, ".zgroup")) {
      guarded(join_path(path, ".zgroup"), [&] {
        Group group{path};
        if (has(entries, ".zattrs"))
          if (const auto attributes = reader_.document(join_path(path, ".zattrs")))
            group.attributes = checked_attributes(JsonRef(*attributes, ".zattrs"));
        add_group(std::move(group));
      });
    }
    if (is_array) return;
    std::uint64_t names = 0;
    for (const Store::Entry& entry : entries) names += sizeof entry + entry.name.capacity();
    const Passing passing(memory_, names);
    for (const Store::Entry& entry : entries) {
      if (!entry.is_prefix) continue;
      // A document of this node. It is listed as a prefix where it is a link that leads outside.
      if (entry.name == "zarr.json" || entry.name == ".zarray" || entry.name == ".zgroup" ||
          entry.name == ".zattrs")
        continue;
      const std::string child = join_path(path, entry.name);
      if (!is_file_name(entry.name)) {
        add_problem(child, "not a usable name");
        continue;
      }
      if (std::count(child.begin(), child.end(), '/') >= kMaxNodeDepth ||
          child.size() > kMaxNodePath)
        continue;
      if (++visited_ > kMaxDirectories)
        throw Error(
            ErrorCode::not_supported,
            fmt::format("more than {} directories without consolidated metadata", kMaxDirectories),
            store_.url());
      walk(child, false);
    }
  }

  /// An array has chunks below it, not nodes; and it is not a group.
  void drop_what_is_below_arrays() {
    auto drop = [this](auto& nodes) {
      for (auto it = nodes.begin(); it != nodes.end();) {
        const std::string& path = it->first;
        bool below = !path.empty() && result_.arrays.contains("");
        for (std::size_t slash = path.find('/'); slash != std::string::npos && !below;
             slash = path.find('/', slash + 1))
          below = result_.arrays.contains(path.substr(0, slash));
        if (below) add_problem(path, "this node lies below an array");
        it = below ? nodes.erase(it) : std::next(it);
      }
    };
    drop(result_.arrays);
    drop(result_.groups);
    for (const auto& [path, array] : result_.arrays) result_.groups.erase(path);
  }

  /// Adds the groups above every path.
  void add_implicit_groups() {
    const auto add_parents = [this](std::string path) {
      while (!path.empty()) {
        const std::size_t slash = path.rfind('/');
        path.resize(slash == std::string::npos ? 0 : slash);
        if (result_.groups.contains(path)) return;  // and so are those above it, then or later
        add_group(Group{path, Json::object(), true});
      }
    };
    std::vector<std::string> explicit_groups;
    for (const auto& [path, group] : result_.groups) explicit_groups.push_back(path);
    for (const std::string& path : explicit_groups) add_parents(path);
    for (const auto& [path, array] : result_.arrays) add_parents(path);
  }

  Store& store_;
  RepositorySigns& signs_;
  MetadataMemory memory_;
  DocumentReader reader_;
  Hierarchy result_;
  std::uint64_t visited_ = 0;
};

}  // namespace

std::string Hierarchy::problem_of(const std::string& path) const {
  for (const auto& [key, why] : problems)
    if (key == path || key == join_path(path, "zarr.json") || key == join_path(path, ".zarray"))
      return fmt::format("{} cannot be used: {}", key, why);
  return {};
}

const ArrayMetadata& Hierarchy::array(const std::string& path) const {
  const auto it = arrays.find(path);
  if (it != arrays.end()) return it->second;
  std::vector<std::string> names;
  for (const auto& [name, array] : arrays) names.push_back(name.empty() ? "/" : name);
  if (groups.contains(path))
    throw Error(ErrorCode::not_found,
                fmt::format("'{}' is a group, not an array", path.empty() ? "/" : path));
  throw Error(ErrorCode::not_found,
              fmt::format("no array '{}'{}", path, nearest_or_all(path, names)));
}

std::vector<std::string> Hierarchy::children(const std::string& group_path) const {
  std::set<std::string> names;
  auto take = [&](const std::string& path) {
    if (path.empty() || path == group_path) return;
    if (!group_path.empty() && !path.starts_with(group_path + "/")) return;
    const std::size_t begin = group_path.empty() ? 0 : group_path.size() + 1;
    names.insert(path.substr(begin, path.find('/', begin) - begin));
  };
  for (const auto& [path, array] : arrays) take(path);
  for (const auto& [path, group] : groups) take(path);
  return {names.begin(), names.end()};
}

Hierarchy open_hierarchy(Store& store, std::uint64_t memory, RepositorySigns* signs) {
  try {
    RepositorySigns unwanted;
    Hierarchy hierarchy = Opener(store, memory, signs != nullptr ? *signs : unwanted).open();
    hierarchy.memory_limit = memory;
    find_nodes(store, hierarchy, {}, memory);
    return hierarchy;
  } catch (Error& error) {
    throw error.at(store.url());
  }
}

}  // namespace batchfs
