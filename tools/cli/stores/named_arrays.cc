#include "tools/cli/stores/named_arrays.h"

#include <set>
#include <utility>

#include "engine/zarr/named_nodes.h"
#include "engine/zarr/node_path.h"
#include "tools/cli/groups.h"

namespace batchfs {

namespace {

/// Texts of a view that are tried: each costs requests.
constexpr std::size_t kMaxTexts = 128;

class Texts {
 public:
  void add(const std::string& text) {
    if (text.empty() || text.size() > kMaxNodePath || text.front() == '#') return;
    if (list.size() < kMaxTexts && seen_.insert(text).second) list.push_back(text);
  }
  void add_all(const Json& json) {
    if (json.is_string()) add(json.get_ref<const std::string&>());
    if (!json.is_structured()) return;
    for (const auto& [key, value] : json.items()) {
      if (json.is_object()) add(key);
      add_all(value);
    }
  }
  std::vector<std::string> list;

 private:
  std::set<std::string> seen_;
};

}  // namespace

bool find_named(OpenedStore& opened, const std::vector<std::string>& paths) {
  if (opened.hierarchy->complete) return false;
  auto found = std::make_shared<Hierarchy>(*opened.hierarchy);
  find_nodes(*opened.store, *found, paths, opened.memory);
  const bool has_more = found->arrays.size() > opened.hierarchy->arrays.size() ||
                        found->groups.size() > opened.hierarchy->groups.size() ||
                        found->problems.size() > opened.hierarchy->problems.size();
  if (has_more) opened.hierarchy = std::move(found);
  return has_more;
}

std::vector<std::string> paths_in_view(const Json& view, const std::string& group) {
  Texts texts;
  if (view.is_object()) {
    if (const auto variables = view.find("variables"); variables != view.end())
      texts.add_all(*variables);
    if (const auto tensors = view.find("tensors"); tensors != view.end() && tensors->is_object())
      for (const auto& [name, tensor] : tensors->items())
        if (tensor.is_object() && tensor.contains("variables")) texts.add_all(tensor["variables"]);
    for (const char* key : {"window", "select", "samples", "missing", "normalize"})
      if (const auto value = view.find(key); value != view.end()) texts.add_all(*value);
  }
  std::vector<std::string> paths;
  for (const std::string& text : texts.list) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string::npos || colon == 0) {
      paths.push_back(join_path(group, text));
      continue;
    }
    const std::string other = without_slashes(text.substr(0, colon));
    if (!other.empty()) paths.push_back(other);
    paths.push_back(join_path(other, text.substr(colon + 1)));
  }
  return paths;
}

std::string naming_advice(const Hierarchy& hierarchy) {
  if (hierarchy.complete) return {};
  return "the server cannot list and the metadata is not consolidated: name arrays with --array "
         "PATH, or consolidate the store (zarr.consolidate_metadata)";
}

}  // namespace batchfs
