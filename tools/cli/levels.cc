#include "tools/cli/levels.h"

#include <fmt/format.h>

#include "engine/zarr/node_path.h"
#include "tools/cli/groups.h"

namespace batchfs {

std::optional<LevelChoice> level_of_view(const Json& view, const OpenedStore& opened) {
  if (view.is_object())
    if (const auto level = view.find("level"); level != view.end())
      return parse_level(JsonRef(*level, "level"));
  return opened.level;
}

std::string level_array(const Hierarchy& hierarchy, const std::string& group,
                        const LevelChoice& choice) {
  const OmeImage& image = hierarchy.ome.image(group);
  const std::string& path = image.levels[choose_level(image, choice)].path;
  hierarchy.array(path);
  return path;
}

std::map<std::string, std::string> level_arrays(const Hierarchy& hierarchy,
                                                const std::string& group,
                                                const std::set<std::string>& texts,
                                                const LevelChoice& choice) {
  std::map<std::string, std::string> arrays;
  const std::string own = level_array(hierarchy, group, choice);
  const std::string stored = join_path(group, kLevelVariable);
  if (own != stored && hierarchy.arrays.contains(stored))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("level: the group has an array named '{}'; leave \"level\" out and "
                            "name the level's array, '{}', in \"variables\"",
                            kLevelVariable, own.substr(own.rfind('/') + 1)));
  arrays.emplace(kLevelVariable, own);
  const std::string suffix = std::string(":") + kLevelVariable;
  for (const std::string& text : texts) {
    if (!text.ends_with(suffix)) continue;
    const std::string other = without_slashes(text.substr(0, text.size() - suffix.size()));
    if (!hierarchy.ome.images.contains(other) ||
        hierarchy.arrays.contains(join_path(other, kLevelVariable)))
      continue;
    try {
      arrays.emplace(text, level_array(hierarchy, other, choice));
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("'{}': {}", text, error.why()));
    }
  }
  return arrays;
}

}  // namespace batchfs
