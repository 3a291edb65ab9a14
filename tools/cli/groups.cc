#include "tools/cli/groups.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "engine/base/json.h"
#include "engine/base/json_comments.h"
#include "engine/base/strings.h"
#include "engine/dataset/fields.h"
#include "engine/dataset/read_variable.h"
#include "engine/store/icechunk/icechunk_store.h"
#include "engine/view/tensors/tensor_layout.h"
#include "engine/view/view.h"
#include "tools/cli/levels.h"
#include "tools/cli/stores/named_arrays.h"

namespace batchfs {

namespace {

/// Groups with arrays, but for `group` and with a limit.
std::vector<std::string> other_groups(const Hierarchy& hierarchy, const std::string& group) {
  constexpr std::size_t kMost = 8;
  std::set<std::string> others;
  for (const auto& [path, array] : hierarchy.arrays)
    if (const std::string parent = parent_group(path); parent != group && others.size() <= kMost)
      others.insert(parent.empty() ? "/" : parent);
  std::vector<std::string> names(others.begin(), others.end());
  if (names.size() > kMost) names.back() = "...";
  return names;
}

/// Error for a view of a group that contains only other groups.
Error no_arrays(const Hierarchy& hierarchy, const std::string& group) {
  const std::vector<std::string> others = other_groups(hierarchy, group);
  return Error(
      ErrorCode::not_found,
      fmt::format("{} has no arrays of its own{}",
                  group.empty() ? "the root" : fmt::format("the group '{}'", group),
                  !others.empty()      ? "; a \"group\" of the view can be " + join(others, ", ")
                  : hierarchy.complete ? ""
                                       : "; " + naming_advice(hierarchy)));
}

/// Collects the texts of a view, or of lists in it, that are meant as names of arrays.
void collect_names(const Json& json, std::set<std::string>& names) {
  static const std::set<std::string> kNaming = {"variables", "variable", "of", "except"};
  if (!json.is_structured()) return;
  for (const auto& [key, value] : json.items()) {
    if (json.is_object() && key == "groups" && value.is_object())
      for (const auto& [name, rule] : value.items()) names.insert(name);
    if (json.is_object() && kNaming.contains(key)) {
      if (value.is_string()) names.insert(value.get<std::string>());
      for (const Json& each : value)
        if (each.is_string()) names.insert(each.get<std::string>());
    }
    collect_names(value, names);
  }
}

/// Collects every text and every key of a view: each may name an array.
void collect_texts(const Json& json, std::set<std::string>& texts) {
  if (json.is_string()) texts.insert(json.get<std::string>());
  if (!json.is_structured()) return;
  for (const auto& [key, value] : json.items()) {
    if (json.is_object()) texts.insert(key);
    collect_texts(value, texts);
  }
}

/// "model/hist:tas" is the array "model/hist/tas", unless the view's own group has an array of this
/// name; "/:tas" is one of the root.
std::optional<std::string> path_of_other(const Hierarchy& hierarchy, const std::string& group,
                                         const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0 || hierarchy.arrays.contains(join_path(group, text)))
    return std::nullopt;
  const std::string name = text.substr(colon + 1);
  const std::string path = join_path(without_slashes(text.substr(0, colon)), name);
  if (name.find('/') != std::string::npos || !hierarchy.arrays.contains(path)) return std::nullopt;
  return path;
}

/// The named arrays of a group, and the coordinates of their dimensions.
std::set<std::string> with_coordinates(const Hierarchy& hierarchy, const std::string& group,
                                       const std::set<std::string>& named) {
  std::set<std::string> arrays;
  for (const std::string& name : named) {
    const std::string path = join_path(group, name);
    const auto found = hierarchy.arrays.find(path);
    const ArrayMetadata* array =
        found != hierarchy.arrays.end() ? &found->second : array_of_field(hierarchy, path);
    if (array == nullptr || name.empty()) continue;
    arrays.insert(name);
    for (const std::string& dim : dimension_names(*array))
      if (hierarchy.arrays.contains(join_path(group, dim))) arrays.insert(dim);
  }
  return arrays;
}

/// Does the view list its variables?
bool names_variables(const Json& view) {
  return view.is_object() && (view.contains("variables") || view.contains("tensors"));
}

/// Error for a view of an image that names none of its levels.
Error no_level(const OmeImage& image) {
  return Error(ErrorCode::invalid_argument,
               fmt::format("an OME-Zarr image of {} levels: choose one with \"level\": 0, or name "
                           "its array in \"variables\"",
                           image.levels.size()));
}

/// Compares two coordinates, given by their paths.
bool have_equal_values(const OpenedStore& opened, const std::string& a, const std::string& b) {
  const auto values = [&](const std::string& path) {
    const std::string name = path.substr(path.rfind('/') + 1);
    const Dataset dataset(opened.store, *opened.hierarchy, parent_group(path), std::set{name});
    return read_index(dataset.variable(name)).values;
  };
  if (opened.hierarchy->array(a).shape != opened.hierarchy->array(b).shape) return false;
  const NdArray one = values(a), other = values(b);
  return one.type == other.type && one.data.size() == other.data.size() &&
         std::memcmp(one.data.data(), other.data.data(), one.data.size()) == 0;
}

}  // namespace

std::string without_slashes(std::string path) {
  while (path.starts_with('/')) path.erase(0, 1);
  while (path.ends_with('/')) path.pop_back();
  return path;
}

std::string find_group(const Hierarchy& hierarchy, const std::string& typed,
                       const std::string& where) {
  const std::string path = without_slashes(typed);
  if (hierarchy.groups.contains(path)) return path;
  if (path.empty()) return path;  // the store is a single array
  std::string why = fmt::format("there is no group '{}'", typed);
  if (hierarchy.arrays.contains(path)) {
    const std::string group = parent_group(path);
    why = fmt::format("'{}' is an array; its group is '{}'", typed, group.empty() ? "/" : group);
  } else {
    std::vector<std::string> groups;
    for (const auto& [name, group] : hierarchy.groups)
      if (!name.empty()) groups.push_back(name);
    why += groups.empty() ? "; there are none but the root" : nearest_or_all(path, groups);
  }
  throw Error(ErrorCode::not_found, why, where);
}

std::string other_groups_text(const Hierarchy& hierarchy, const std::string& group) {
  const std::vector<std::string> others = other_groups(hierarchy, group);
  return others.empty() ? std::string() : "; --group can be " + join(others, ", ");
}

bool has_view_variables(const Dataset& dataset) {
  return std::any_of(
      dataset.variables().begin(), dataset.variables().end(), [](const Variable& variable) {
        return !variable.is_coordinate && !variable.dims.empty() && fits_tensor(variable);
      });
}

bool is_in_group(const std::string& path, const std::string& group) {
  return group.empty() || path == group || path.starts_with(group + "/");
}

std::shared_ptr<const Dataset> GroupDatasets::chosen() {
  const auto image = opened_.hierarchy->ome.images.find(opened_.group);
  const bool has_levels =
      image != opened_.hierarchy->ome.images.end() && image->second.levels.size() > 1;
  if (!has_levels && !opened_.level) return of(opened_.group);
  return of_level(opened_.group, {}, {}, opened_.level.value_or(LevelChoice{})).dataset;
}

GroupDatasets::Chosen GroupDatasets::choose(const std::string& json, const std::string& where) {
  const Json view = parse_json(without_comments(json, where), where, {.allow_nan = false});
  if (view.is_object() && view.contains("sources")) {
    try {
      return {joined(view), std::nullopt};
    } catch (Error& error) {
      throw error.at(where);
    }
  }
  return choose(view, where);
}

GroupDatasets::Chosen GroupDatasets::choose(const Json& view, const std::string& where) {
  std::string own = opened_.group;
  // The view's parser rejects a "group" that is not a string.
  if (view.is_object())
    if (const auto group = view.find("group"); group != view.end() && group->is_string()) {
      find({without_slashes(group->get<std::string>())});
      try {
        own = find_group(*opened_.hierarchy, group->get<std::string>(), "group");
      } catch (const Error& error) {
        throw Error(error.code(), "group: " + error.why(), where);
      }
    }
  const std::vector<std::string> paths = paths_in_view(view, own);
  find(paths);
  expect_icechunk_arrays(*opened_.store, paths);
  std::set<std::string> texts, names;
  collect_texts(view, texts);
  collect_names(view, names);
  try {
    return of_names(view, own, texts);
  } catch (Error& error) {
    // An array that does not fit may only be called as a word of the view is: "mask", "target".
    if (error.code() != ErrorCode::invalid_argument || names.empty() || names == texts)
      throw error.at(where);
  }
  try {
    return of_names(view, own, names);
  } catch (Error& error) {
    throw error.at(where);
  }
}

GroupDatasets::Chosen GroupDatasets::of_names(const Json& view, const std::string& own,
                                              const std::set<std::string>& named) {
  Arrays others;
  for (const std::string& text : named)
    if (const std::optional<std::string> path = path_of_other(*opened_.hierarchy, own, text))
      others.emplace(text, *path);
  if (const auto level = level_of_view(view, opened_))
    return of_level(own, names_variables(view) ? named : std::set<std::string>(), std::move(others),
                    *level);
  const auto dataset = others.empty() ? of_named(own, named) : with_others(own, named, others);
  if (dataset->variables().empty()) throw no_arrays(*opened_.hierarchy, own);
  return {dataset, std::nullopt};
}

void GroupDatasets::find(const std::vector<std::string>& paths) {
  if (find_named(opened_, paths)) datasets_.clear();
}

GroupDatasets::Chosen GroupDatasets::of_level(const std::string& group,
                                              const std::set<std::string>& named, Arrays others,
                                              const LevelChoice& choice) {
  const Hierarchy& hierarchy = *opened_.hierarchy;
  const auto number = static_cast<std::int64_t>(choose_level(hierarchy.ome.image(group), choice));
  if (named.empty()) others.clear();
  others.merge(level_arrays(hierarchy, group, named, choice));
  return {with_others(group, named, others), number};
}

std::shared_ptr<const Dataset> GroupDatasets::of_named(const std::string& group,
                                                       const std::set<std::string>& named) {
  try {
    return of(group);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument) throw;
    const std::set<std::string> arrays = with_coordinates(*opened_.hierarchy, group, named);
    if (const auto image = opened_.hierarchy->ome.images.find(group);
        arrays.empty() && image != opened_.hierarchy->ome.images.end())
      throw no_level(image->second);
    if (arrays.empty()) throw;
    return std::make_shared<const Dataset>(opened_.store, *opened_.hierarchy, group, arrays);
  }
}

std::shared_ptr<const Dataset> GroupDatasets::with_others(const std::string& group,
                                                          const std::set<std::string>& named,
                                                          const Arrays& others) {
  const Hierarchy& hierarchy = *opened_.hierarchy;
  const std::set<std::string> own = with_coordinates(hierarchy, group, named);
  Arrays more = others;
  // Their coordinates, which must be equal wherever a dimension has one.
  Arrays coordinates;
  for (const std::string& name : own) coordinates.emplace(name, join_path(group, name));
  for (const auto& [name, path] : others)
    for (const std::string& dim : dimension_names(hierarchy.array(path))) {
      const std::string coordinate = join_path(parent_group(path), dim);
      if (!hierarchy.arrays.contains(coordinate)) continue;
      const auto [known, is_new] = coordinates.emplace(dim, coordinate);
      if (is_new)
        more.emplace(dim, coordinate);
      else if (!have_equal_values(opened_, known->second, coordinate))
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("'{}' has another coordinate '{}' than '{}': a view has one "
                                "coordinate for each dimension; take the groups in views of their "
                                "own",
                                name, dim, known->second));
    }
  return std::make_shared<const Dataset>(opened_.store, hierarchy, group, own, more);
}

std::shared_ptr<const Dataset> GroupDatasets::of(const std::string& group) {
  std::shared_ptr<const Dataset>& dataset = datasets_[group];
  if (dataset == nullptr)
    dataset = std::make_shared<const Dataset>(opened_.store, *opened_.hierarchy, group);
  return dataset;
}

}  // namespace batchfs
