#include "engine/dataset/dimension_names.h"

#include <algorithm>

#include <fmt/format.h>

namespace batchfs {

namespace {

using Names = std::vector<std::optional<std::string>>;

/// A list of strings or nulls, one for each dimension; nullopt: not such a list.
std::optional<Names> names_of(const Json& list, std::size_t rank) {
  if (!list.is_array() || list.size() != rank) return std::nullopt;
  Names names;
  for (const Json& name : list) {
    if (name.is_string())
      names.emplace_back(name.get<std::string>());
    else if (name.is_null())
      names.emplace_back();
    else
      return std::nullopt;
  }
  return names;
}

/// NCZarr: references like "/time".
std::optional<Names> nczarr_names(const ArrayMetadata& array) {
  const Json* references = nullptr;
  for (const Json* holder : {&array.document, &array.attributes})
    for (const char* key : {"_NCZARR_ARRAY", "_nczarr_array"})
      if (const auto it = holder->find(key); it != holder->end() && it->is_object()) {
        for (const char* name : {"dimrefs", "dimension_references"})
          if (const auto refs = it->find(name); refs != it->end()) references = &*refs;
      }
  if (references == nullptr) return std::nullopt;
  std::optional<Names> names = names_of(*references, array.shape.size());
  if (names)
    for (auto& name : *names)
      if (name) name = name->substr(name->rfind('/') + 1);
  return names;
}

bool is_named(const std::optional<std::string>& name) { return name && !name->empty(); }

}  // namespace

Names stored_dimension_names(const ArrayMetadata& array) {
  const std::size_t rank = array.shape.size();
  if (std::any_of(array.dimension_names.begin(), array.dimension_names.end(),
                  [](const auto& name) { return name.has_value(); }))
    return array.dimension_names;
  if (const auto it = array.attributes.find("_ARRAY_DIMENSIONS"); it != array.attributes.end())
    if (auto names = names_of(*it, rank)) return *names;
  if (auto names = nczarr_names(array)) return *names;
  Names names(rank);
  if (array.axes.size() == rank)
    for (std::size_t d = 0; d < rank; ++d) names[d] = array.axes[d].name;
  return names;
}

std::vector<std::size_t> first_dims_of_name(const ArrayMetadata& array) {
  const Names stored = stored_dimension_names(array);
  std::vector<std::size_t> firsts;
  for (std::size_t d = 0; d < stored.size(); ++d)
    firsts.push_back(is_named(stored[d])
                         ? static_cast<std::size_t>(
                               std::find(stored.begin(), stored.end(), stored[d]) - stored.begin())
                         : d);
  return firsts;
}

std::vector<std::string> dimension_names(const ArrayMetadata& array) {
  const Names stored = stored_dimension_names(array);
  std::vector<std::string> names;
  for (std::size_t d = 0; d < stored.size(); ++d) {
    const std::string name = is_named(stored[d]) ? *stored[d] : fmt::format("dim_{}", d);
    // Stored names come first: generated names must differ from all of them.
    const auto is_taken = [&](const std::string& other) {
      return std::find(names.begin(), names.end(), other) != names.end() ||
             std::find(stored.begin(), stored.end(), other) != stored.end();
    };
    const bool is_first =
        is_named(stored[d]) && std::find(names.begin(), names.end(), name) == names.end();
    std::string own = name;
    for (int number = 2; !is_first && is_taken(own); ++number)
      own = fmt::format("{}:{}", name, number);
    names.push_back(std::move(own));
  }
  return names;
}

}  // namespace batchfs
