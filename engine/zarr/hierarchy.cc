#include "engine/zarr/hierarchy.h"

#include <algorithm>
#include <future>
#include <map>
#include <set>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/store/store_kind.h"

namespace batchfs {

namespace {

constexpr std::uint64_t kLargestDocument = 256 << 20;

std::string join_path(const std::string& parent, const std::string& name) {
  return parent.empty() ? name : parent + "/" + name;
}

bool is_node_path(const std::string& path) {
  if (path.empty()) return true;
  const std::vector<std::string> parts = split(path, '/');
  return std::all_of(parts.begin(), parts.end(), [](const std::string& p) { return is_file_name(p); });
}

/// Reads and parses documents, remembering a digest of all.
class Reader {
 public:
  explicit Reader(Store& store) : store_(store) {}

  /// Starts to read a document that is likely to be wanted: both then take one round trip.
  void ask_ahead(const std::string& key) {
    const auto promise = std::make_shared<std::promise<std::optional<Buffer>>>();
    asked_[key] = promise->get_future();
    store_.read_async(key, {0, kLargestDocument + 1}, [promise](ReadOutcome outcome) {
      if (auto* error = std::get_if<std::exception_ptr>(&outcome)) promise->set_exception(*error);
      else promise->set_value(std::move(std::get<std::optional<Buffer>>(outcome)));
    });
  }

  std::optional<Json> document(const std::string& key) {
    const auto asked = asked_.extract(key);
    const std::optional<Buffer> bytes =
        asked ? asked.mapped().get() : store_.read(key, {0, kLargestDocument + 1});
    if (!bytes) return std::nullopt;
    if (bytes->size() > kLargestDocument)
      throw Error(ErrorCode::not_supported, "metadata documents of more than 256 MB are not supported", key);
    const std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    add_to_digest(key);
    add_to_digest(text);
    return parse_json(text, key);
  }

  /// The same for a document that is perhaps not there. What some servers answer instead of "missing" (a web
  /// page, access denied) is an error only if there is no other document, either: see refusal().
  std::optional<Json> probe(const std::string& key) {
    try {
      return document(key);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::corrupt && error.code() != ErrorCode::access_denied) throw;
      if (!refusal_) refusal_ = error;
      return std::nullopt;
    }
  }
  const std::optional<Error>& refusal() const { return refusal_; }

  std::string digest() const { return fmt::format("{:016x}", digest_); }

 private:
  // FNV-1a: names a snapshot, guards nothing.
  void add_to_digest(std::string_view text) {
    for (char c : text) digest_ = (digest_ ^ static_cast<unsigned char>(c)) * UINT64_C(0x100000001b3);
  }
  Store& store_;
  std::map<std::string, std::future<std::optional<Buffer>>> asked_;
  std::optional<Error> refusal_;
  std::uint64_t digest_ = UINT64_C(0xcbf29ce484222325);
};

class Opener {
 public:
  explicit Opener(Store& store) : store_(store), reader_(store) {}

  Hierarchy open() {
    if (!store_.is_local())
      for (const char* key : {"zarr.json", ".zmetadata"}) reader_.ask_ahead(key);
    if (auto root = reader_.probe("zarr.json")) open_v3(*root);
    else if (auto consolidated = reader_.probe(".zmetadata")) open_consolidated_v2(*consolidated);
    else if (store_.can_list()) walk("", true);
    else open_root_v2();
    if (result_.groups.empty() && result_.arrays.empty()) refuse();
    drop_what_is_below_arrays();
    add_implicit_groups();
    result_.snapshot_id = reader_.digest();
    return std::move(result_);
  }

 private:
  [[noreturn]] void refuse() {
    if (reader_.refusal()) throw *reader_.refusal();
    if (!result_.problems.empty())
      throw Error(ErrorCode::corrupt, result_.problems.front().second, result_.problems.front().first);
    const auto kind = store_.can_list() ? kind_by_listing(store_.list("")) : kind_by_probing();
    if (kind) throw unread_kind(*kind, store_.url());
    throw Error(ErrorCode::not_found,
                "not a Zarr store: no zarr.json, .zgroup, .zarray or .zmetadata here or below",
                store_.url());
  }

  static std::optional<StoreKind> kind_by_listing(const std::vector<Store::Entry>& entries) {
    std::vector<std::string> names;
    for (const Store::Entry& entry : entries) names.push_back(entry.is_prefix ? entry.name + "/" : entry.name);
    return kind_of_directory(names);
  }

  /// Only once it is clear that this is not a Zarr store: requests that a good one does not cost.
  std::optional<StoreKind> kind_by_probing() {
    if (const auto kind = kind_of_name(store_.url())) return kind;
    const auto has = [this](const char* key, std::string_view member) {
      const auto document = reader_.probe(key);
      return document && document->is_object() && document->contains(member);
    };
    if (has("refs/branch.main/ref.json", "snapshot")) return StoreKind::icechunk;
    if (has("attributes.json", "n5")) return StoreKind::n5;
    const auto head = store_.read("repo", {0, kKindBytes});
    return head ? kind_of_file(head->span()) : std::nullopt;
  }

  /// Runs `body`; what is wrong with one node is a problem of that node, not of the store.
  template <class Body>
  void guarded(const std::string& key, Body&& body) {
    try {
      body();
    } catch (const Error& error) {
      if (error.code() == ErrorCode::io || error.code() == ErrorCode::timed_out) throw;
      result_.problems.emplace_back(key, error.why());
    }
  }

  // ---- v3 ----
  void open_v3(const Json& root) {
    result_.zarr_format = 3;
    const JsonRef ref(root, "");
    const auto format = ref.find("zarr_format");
    const bool pre_final = (format && !format->is_number()) || (!format && ref.find("metadata_encoding"));
    if (pre_final)
      throw Error(ErrorCode::not_supported, "Zarr v3 from before the final specification is not supported", "zarr.json");
    if (ref.at("node_type").string() == "array") {
      result_.arrays.emplace("", parse_array_v3("", root, "zarr.json"));
      return;
    }
    try {
      add_group_v3("", root);
    } catch (Error& error) {
      throw error.at("zarr.json");
    }
    const auto consolidated = ref.find("consolidated_metadata");
    if (consolidated && consolidated->is_object()) {
      if (const auto metadata = consolidated->find("metadata")) {
        result_.consolidated = true;
        for (const auto& [path, node] : metadata->members()) {
          if (path.empty()) result_.problems.emplace_back("zarr.json", "consolidated metadata of a node without a name");
          else add_node_v3(path, node.value());
        }
        return;
      }
    }
    if (!store_.can_list()) refuse_group();
    walk("", false);
  }

  void add_group_v3(const std::string& path, const Json& document) {
    const JsonRef root(document, "");
    if (root.at("node_type").string() != "group") throw root.at("node_type").error("expected \"array\" or \"group\"");
    if (root.at("zarr_format").integer() != 3) throw root.at("zarr_format").error("expected 3");
    const auto attributes = root.find("attributes");
    result_.groups[path] = {path, attributes && !attributes->is_null() ? checked_attributes(*attributes) : Json::object()};
  }

  static const Json& checked_attributes(const JsonRef& attributes) {
    if (!attributes.is_object()) throw attributes.error("expected an object");
    return attributes.value();
  }

  bool add_node_v3(const std::string& path, const Json& document) {
    bool is_array = false;
    const std::string key = join_path(path, "zarr.json");
    guarded(key, [&] {
      if (!is_node_path(path)) throw Error(ErrorCode::invalid_argument, "not a usable name");
      if (JsonRef(document, "").at("node_type").string() == "array") {
        is_array = true;
        result_.arrays[path] = parse_array_v3(path, document, key);
      } else {
        add_group_v3(path, document);
      }
    });
    return is_array;
  }

  // ---- v2 ----
  void open_consolidated_v2(const Json& consolidated) {
    result_.consolidated = true;
    const JsonRef root(consolidated, ".zmetadata");
    if (root.find("record_size")) throw unread_kind(StoreKind::kerchunk_parquet, store_.url());
    const JsonRef metadata = root.at("metadata");
    static const Json kNoAttributes = Json::object();
    std::map<std::string, const Json*> attributes;
    const auto members = metadata.members();
    auto parent_of = [](const std::string& key, std::string_view name) -> std::optional<std::string> {
      if (key == name) return std::string();
      if (!key.ends_with("/" + std::string(name))) return std::nullopt;
      return key.substr(0, key.size() - name.size() - 1);
    };
    for (const auto& [key, value] : members)
      if (const auto path = parent_of(key, ".zattrs")) attributes[*path] = &value.value();
    for (const auto& [key, value] : members) {
      auto attributes_of = [&](const std::string& path) -> const Json& {
        const auto it = attributes.find(path);
        return it == attributes.end() ? kNoAttributes : *it->second;
      };
      guarded(key, [&, &document = value.value(), &key_name = key] {
        if (const auto path = parent_of(key_name, ".zarray")) {
          if (!is_node_path(*path)) throw Error(ErrorCode::invalid_argument, "not a usable name");
          result_.arrays[*path] = parse_array_v2(*path, document, attributes_of(*path), key_name);
        } else if (const auto group = parent_of(key_name, ".zgroup")) {
          if (!is_node_path(*group)) throw Error(ErrorCode::invalid_argument, "not a usable name");
          result_.groups[*group] = Group{*group, checked_attributes(JsonRef(attributes_of(*group), ".zattrs"))};
        }
      });
    }
  }

  // ---- without listing ----
  void open_root_v2() {
    if (const auto array = reader_.probe(".zarray")) {
      const Json attributes = reader_.probe(".zattrs").value_or(Json::object());
      result_.arrays[""] = parse_array_v2("", *array, attributes, ".zarray");
    } else if (reader_.probe(".zgroup")) {
      refuse_group();
    }
  }

  /// Names of arrays below a group are in consolidated metadata, or in a listing.
  [[noreturn]] void refuse_group() {
    throw Error(ErrorCode::not_supported,
                "a group without consolidated metadata, on a server that cannot list: what is in it cannot be found; "
                "consolidate it (zarr.consolidate_metadata), or open one array by its own URL",
                store_.url());
  }

  // ---- listing ----
  /// Reads the node at `path` and goes on below it unless it is an array.
  void walk(const std::string& path, bool is_root) {
    std::vector<Store::Entry> entries;
    guarded(path, [&] { entries = store_.list(path); });
    auto has = [&](std::string_view name) {
      return std::any_of(entries.begin(), entries.end(), [&](const Store::Entry& e) { return e.name == name; });
    };
    // Before the directories of another kind of store are listed: they may be huge.
    if (is_root && !has("zarr.json") && !has(".zarray") && !has(".zgroup") && kind_by_listing(entries) == StoreKind::icechunk)
      throw unread_kind(StoreKind::icechunk, store_.url());
    bool is_array = false;
    if (has("zarr.json") && !(is_root == false && path.empty())) {
      const std::string key = join_path(path, "zarr.json");
      guarded(key, [&] {
        if (const auto document = reader_.document(key)) is_array = add_node_v3(path, *document);
      });
    } else if (has(".zarray")) {
      is_array = true;
      const std::string key = join_path(path, ".zarray");
      guarded(key, [&] {
        Json attributes = Json::object();
        if (has(".zattrs")) attributes = reader_.document(join_path(path, ".zattrs")).value_or(attributes);
        if (const auto document = reader_.document(key))
          result_.arrays[path] = parse_array_v2(path, *document, attributes, key);
      });
    } else if (has(".zgroup")) {
      guarded(join_path(path, ".zgroup"), [&] {
        Group group{path};
        if (has(".zattrs"))
          if (const auto attributes = reader_.document(join_path(path, ".zattrs")))
            group.attributes = checked_attributes(JsonRef(*attributes, ".zattrs"));
        result_.groups[path] = std::move(group);
      });
    }
    if (is_array) return;
    for (const Store::Entry& entry : entries) {
      if (!entry.is_prefix) continue;
      const std::string child = join_path(path, entry.name);
      if (!is_file_name(entry.name)) {
        result_.problems.emplace_back(child, "not a usable name");
        continue;
      }
      if (std::count(child.begin(), child.end(), '/') >= kDeepest) continue;
      if (++visited_ > kMostDirectories)
        throw Error(ErrorCode::not_supported,
                    fmt::format("more than {} directories without consolidated metadata", kMostDirectories),
                    store_.url());
      walk(child, false);
    }
  }

  /// An array has chunks below it, no nodes; and it is no group.
  void drop_what_is_below_arrays() {
    auto drop = [this](auto& nodes) {
      for (auto it = nodes.begin(); it != nodes.end();) {
        const std::string& path = it->first;
        bool below = !path.empty() && result_.arrays.contains("");
        for (std::size_t slash = path.find('/'); slash != std::string::npos && !below; slash = path.find('/', slash + 1))
          below = result_.arrays.contains(path.substr(0, slash));
        if (below) result_.problems.emplace_back(path, "this node lies below an array");
        it = below ? nodes.erase(it) : std::next(it);
      }
    };
    drop(result_.arrays);
    drop(result_.groups);
    for (const auto& [path, array] : result_.arrays) result_.groups.erase(path);
  }

  void add_implicit_groups() {
    std::set<std::string> paths;
    auto add_parents = [&](std::string path) {
      while (!path.empty()) {
        const std::size_t slash = path.rfind('/');
        path.resize(slash == std::string::npos ? 0 : slash);
        paths.insert(path);
      }
    };
    for (const auto& [path, array] : result_.arrays) add_parents(path);
    for (const auto& [path, group] : result_.groups) add_parents(path);
    for (const std::string& path : paths)
      result_.groups.try_emplace(path, Group{path, Json::object(), true});
  }

  static constexpr std::ptrdiff_t kDeepest = 64;
  static constexpr std::uint64_t kMostDirectories = 1'000'000;
  Store& store_;
  Reader reader_;
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
    throw Error(ErrorCode::not_found, fmt::format("'{}' is a group, not an array", path.empty() ? "/" : path));
  throw Error(ErrorCode::not_found, fmt::format("no array '{}'{}", path, nearest_or_all(path, names)));
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

Hierarchy open_hierarchy(Store& store) {
  try {
    return Opener(store).open();
  } catch (Error& error) {
    throw error.at(store.url());
  }
}

}  // namespace batchfs
