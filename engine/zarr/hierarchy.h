#pragma once
// The groups and arrays of a store, read once and pinned.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/budget.h"
#include "engine/store/store.h"
#include "engine/zarr/array_metadata.h"
#include "engine/zarr/ome/metadata.h"

namespace batchfs {

struct Group {
  std::string path;  // "" is the root
  Json attributes = Json::object();
  bool implicit = false;  // has no metadata of its own, only children
};

/// Immutable after opening.
struct Hierarchy {
  int zarr_format = 2;                          // of the root
  bool consolidated = false;                    // read from consolidated metadata
  std::map<std::string, Group> groups;          // by path
  std::map<std::string, ArrayMetadata> arrays;  // by path
  /// False for a server that cannot list, without consolidated metadata: there may be more nodes,
  /// which find_nodes() finds by their paths.
  bool complete = true;
  OmeMetadata ome;
  /// Metadata that could not be used: key and reason. Shown by inspect, logged by the mount.
  std::vector<std::pair<std::string, std::string>> problems;
  /// Attributes that are not read as they are stored: key of the document and their reading. Shown
  /// by inspect, logged by the mount.
  std::vector<std::pair<std::string, std::string>> notes;
  /// Names this snapshot of the store: its own id of it, else a digest of all metadata read.
  std::string snapshot_id;
  /// This version in the history of a store that has one.
  std::optional<Store::Revision> revision;
  /// Bytes of memory that all this takes, estimated.
  std::uint64_t memory = 0;
  /// The reader's memory limit for it and for data read through it: --memory.
  std::uint64_t memory_limit = default_memory_budget();

  /// Why there is nothing at `path`, when there is something that could not be used; else empty.
  std::string problem_of(const std::string& path) const;
  /// The array at `path`. Throws not_found with the nearest name.
  const ArrayMetadata& array(const std::string& path) const;
  /// Names of the groups and arrays directly below a group.
  std::vector<std::string> children(const std::string& group_path) const;
};

/// Reads the metadata of a store: v3 zarr.json (with inline consolidated metadata when it has it),
/// else v2 .zmetadata, else .zgroup/.zarray found by listing; where the store cannot list, the root
/// and the nodes that its metadata names (see find_nodes()). The store's root may itself be an
/// array (path ""). A v2 array or group inside a directory that has no .zgroup makes implicit
/// groups. Throws not_found when the place holds no Zarr store; not_supported for pre-final v3
/// layouts; no_memory when reading it takes more than `memory` bytes. Limits: engine/base/limits.h.
/// A node beyond one is a problem of that node. For an Icechunk repository, which is not_supported
/// here, `signs` receive its reads, unless they are null.
Hierarchy open_hierarchy(Store& store, std::uint64_t memory = default_memory_budget(),
                         RepositorySigns* signs = nullptr);

}  // namespace batchfs
