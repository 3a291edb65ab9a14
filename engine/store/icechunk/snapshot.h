#pragma once
// A snapshot of an Icechunk repository: its groups and arrays, and the manifests that locate the
// chunks of each array.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/store/icechunk/file.h"
#include "engine/store/icechunk/object_id.h"
#include "engine/store/store.h"

namespace batchfs::icechunk {

/// A range of the chunk grid along one dimension: [from, to).
struct ChunkIndexRange {
  std::uint32_t from, to;
};

/// A manifest and the part of an array's chunk grid that it describes.
struct ManifestUse {
  ObjectId id;
  std::uint32_t extents;  // index of the first of `rank`
  std::uint32_t rank;     // 0: the whole grid
};

struct Node {
  std::string_view path;  // no leading slash; "" is the root
  Bytes document;         // its zarr.json
  NodeId id;
  bool is_array;
  std::uint32_t first_use, uses;  // of manifests
};

/// Immutable.
class Snapshot {
 public:
  /// Throws corrupt, not_supported, no_memory for a snapshot that takes more than `memory` bytes.
  /// `id` is the requested one.
  static std::shared_ptr<const Snapshot> parse(Bytes file, const ObjectId& id,
                                               std::uint64_t memory);

  const ObjectId& id() const { return id_; }
  /// In repositories of version 1; those of version 2 keep their history elsewhere.
  const std::optional<ObjectId>& parent() const { return parent_; }
  std::uint64_t written_at() const { return written_at_; }  // microseconds since 1970
  std::string_view message() const { return message_; }

  /// Sorted by path, each once.
  const std::vector<Node>& nodes() const { return nodes_; }
  /// nullptr where there is none.
  const Node* find(std::string_view path) const;
  /// Like Store::list(), of groups, arrays and their documents.
  std::vector<Store::Entry> list(const std::string& prefix) const;

  /// The manifest that describes a chunk of an array; nullptr: none, so the chunk was never
  /// written.
  const ManifestUse* manifest_of(const Node& array, const std::vector<std::uint32_t>& chunk) const;
  const std::vector<ManifestUse>& manifests() const { return uses_; }
  /// May the manifest describe chunks whose first indices are these?
  bool may_hold(const ManifestUse& use, const std::vector<std::uint32_t>& begin) const;

  struct ManifestFile {
    ObjectId id;
    std::uint64_t bytes;
    std::uint32_t references;
  };
  const std::vector<ManifestFile>& manifest_files() const { return files_; }  // sorted by id
  const ManifestFile* manifest_file(const ObjectId& id) const;

  std::uint64_t memory() const { return memory_; }

 private:
  File file_;
  ObjectId id_{};
  std::optional<ObjectId> parent_;
  std::uint64_t written_at_ = 0;
  std::string_view message_;
  std::vector<Node> nodes_;
  std::vector<ManifestUse> uses_;
  std::vector<ChunkIndexRange> extents_;
  std::vector<ManifestFile> files_;
  std::uint64_t memory_ = 0;
};

}  // namespace batchfs::icechunk
