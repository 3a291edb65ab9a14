#include "engine/zarr/metadata_json.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "engine/base/json_repair.h"
#include "engine/base/strings.h"
#include "engine/zarr/node_path.h"

namespace batchfs {

namespace {

constexpr std::size_t kMaxRepaired = 64;

bool is_attributes_key(std::string_view key) {
  return key == ".zattrs" || key.ends_with("/.zattrs");
}

class Document {
 public:
  Document(const std::string& key, DocumentNotes& notes)
      : key_(key), name_(key.substr(key.rfind('/') + 1)), notes_(notes) {}

  Json parse(std::string_view text, std::uint64_t memory) {
    Json json = parse_python_json(text, key_, memory,
                                  [this](const JsonRepair& repair) { classify(repair); });
    if (!left_out_.empty()) leave_out(json);
    return json;
  }

 private:
  using Path = std::vector<std::string>;

  /// Where the nodes of consolidated metadata lie in this document; empty: nowhere.
  Path consolidated() const {
    if (name_ == ".zmetadata") return {"metadata"};
    if (name_ == "zarr.json") return {"consolidated_metadata", "metadata"};
    return {};
  }

  bool is_consolidated(const Path& path) const {
    const Path nodes = consolidated();
    return !nodes.empty() && path.size() > nodes.size() &&
           std::equal(nodes.begin(), nodes.end(), path.begin());
  }

  void classify(const JsonRepair& repair) {
    const Path& path = repair.path;
    if (is_attributes_key(key_)) {
      if (!path.empty()) add_repaired(key_, path[0], repair);
      return;
    }
    if (name_ == "zarr.json" && path.size() > 1 && path[0] == "attributes")
      return add_repaired(key_, path[1], repair);
    if (!is_consolidated(path))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("'{}' has {}", join(path, "."), repair.has), key_);
    const std::size_t depth = consolidated().size();
    const std::string& node = path[depth];
    if (name_ == ".zmetadata" && is_attributes_key(node) && path.size() > depth + 1)
      return add_repaired(node, path[depth + 1], repair);
    const std::string document = name_ == ".zmetadata" ? node : join_path(node, "zarr.json");
    if (name_ == "zarr.json" && path.size() > depth + 2 && path[depth + 1] == "attributes")
      return add_repaired(document, path[depth + 2], repair);
    if (!left_out_.insert(node).second) return;
    const Path inside(path.begin() + static_cast<std::ptrdiff_t>(depth) + 1, path.end());
    notes_.left_out.emplace_back(
        document, inside.empty() ? fmt::format("its name has {}", repair.has)
                                 : fmt::format("'{}' has {}", join(inside, "."), repair.has));
  }

  void add_repaired(const std::string& document, const std::string& attribute,
                    const JsonRepair& repair) {
    if (notes_.repaired.size() >= kMaxRepaired) return;
    const std::string why = short_reason(fmt::format(
        "the attribute '{}' has {}, which is read as {}", attribute, repair.has, repair.read_as));
    if (!notes_.repaired.empty() && notes_.repaired.back() == std::pair(document, why)) return;
    notes_.repaired.emplace_back(document, why);
  }

  void leave_out(Json& json) const {
    Json* nodes = &json;
    for (const std::string& key : consolidated()) nodes = &nodes->at(key);
    Json kept = Json::object();
    for (auto& [name, node] : nodes->get_ref<Json::object_t&>())
      if (!left_out_.contains(name)) append_member(kept, name, std::move(node));
    *nodes = std::move(kept);
  }

  const std::string& key_;
  const std::string name_;
  DocumentNotes& notes_;
  std::set<std::string> left_out_;
};

}  // namespace

Json parse_metadata(std::string_view text, const std::string& key, std::uint64_t memory,
                    DocumentNotes& notes) {
  return Document(key, notes).parse(text, memory);
}

}  // namespace batchfs
