#include "engine/zarr/rerooted.h"

#include <optional>
#include <utility>

#include "engine/zarr/ome/read_ome.h"

namespace batchfs {

Hierarchy rerooted(Hierarchy hierarchy, const std::string& path) {
  const auto below = [&path](const std::string& node) -> std::optional<std::string> {
    if (path.empty()) return node;
    if (node == path) return std::string();
    if (!node.starts_with(path + "/")) return std::nullopt;
    return node.substr(path.size() + 1);
  };
  Hierarchy result;
  result.zarr_format = hierarchy.zarr_format;
  result.consolidated = hierarchy.consolidated;
  result.complete = hierarchy.complete;
  result.snapshot_id = std::move(hierarchy.snapshot_id);
  result.revision = std::move(hierarchy.revision);
  result.memory = hierarchy.memory;
  result.memory_limit = hierarchy.memory_limit;
  if (hierarchy.groups.contains(path))
    for (auto& [node, group] : hierarchy.groups)
      if (const auto name = below(node)) {
        group.path = *name;
        result.groups.emplace(*name, std::move(group));
      }
  if (result.groups.empty()) return result;
  for (auto& [node, array] : hierarchy.arrays)
    if (const auto name = below(node)) {
      array.path = *name;
      // The document above is not an object of this store; the array's own is.
      array.source = *name + (array.zarr_format == 3 ? "/zarr.json" : "/.zarray");
      result.arrays.emplace(*name, std::move(array));
    }
  for (auto& [key, why] : hierarchy.problems)
    if (const auto name = below(key)) result.problems.emplace_back(*name, std::move(why));
  for (auto& [key, why] : hierarchy.notes)
    if (const auto name = below(key)) result.notes.emplace_back(*name, std::move(why));
  // It names paths. Its memory was counted when the hierarchy was read.
  MetadataMemory memory(UINT64_MAX);
  read_ome(result, memory);
  return result;
}

}  // namespace batchfs
