#pragma once
// Names of objects that hold Zarr metadata.

#include <string_view>

namespace batchfs {

inline bool is_metadata_key(std::string_view key) {
  const std::string_view name = key.substr(key.rfind('/') + 1);
  return name == "zarr.json" || name == ".zarray" || name == ".zgroup" || name == ".zattrs" ||
         name == ".zmetadata";
}

/// Is it where an Icechunk repository names its newest snapshots?
inline bool is_repository_key(std::string_view key) {
  return key == "repo" || (key.starts_with("refs/") && key.ends_with("/ref.json"));
}

/// Is it an object that stores rewrite while they grow: Zarr metadata, references, branches and
/// tags of an Icechunk repository?
inline bool is_rewritten_key(std::string_view key) {
  return is_metadata_key(key) || key.ends_with(".json") || key == "repo";
}

}  // namespace batchfs
