#include "engine/store/icechunk/snapshot.h"

#include <algorithm>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "engine/base/printable.h"
#include "engine/store/little_endian.h"
#include "engine/store/virtual/claims.h"

namespace batchfs::icechunk {

namespace {

// Fields of the schema's tables by number: snapshot.fbs of Icechunk's.
enum SnapshotField { kId, kParent, kNodes, kWrittenAt, kMessage, kFiles = 6, kFilesV2 = 7 };
enum NodeField { kNodeId, kPath, kDocument, kDataType, kData };
enum ArrayField { kManifests = 2 };
enum UseField { kUseId, kExtents };
enum FileV2Field { kFileId, kFileBytes, kFileReferences };
constexpr std::uint8_t kArrayData = 1, kGroupData = 2;

constexpr std::uint32_t kFileStructBytes = 32, kFileBytesAt = 16, kFileReferencesAt = 24;

template <class Id>
Id id_of(Bytes bytes, const char* what) {
  Id id;
  if (bytes.size() != id.size()) throw_flat_damage(what);
  std::memcpy(id.data(), bytes.data(), id.size());
  return id;
}

std::string_view checked_path(std::string_view path) {
  if (!path.starts_with('/') || (path.size() > 1 && !is_key(path.substr(1))))
    throw Error(ErrorCode::corrupt, fmt::format("'{}' is not a path of a node",
                                                printable(std::string(path.substr(0, 200)))));
  return path.substr(1);
}

}  // namespace

std::shared_ptr<const Snapshot> Snapshot::parse(Bytes bytes, const ObjectId& id,
                                                std::uint64_t memory) {
  const auto result = std::make_shared<Snapshot>();
  Snapshot& s = *result;
  s.file_ = open_file(bytes, FileType::snapshot, memory);
  Claims claims(memory);
  claims.take(s.file_.payload.size());
  const FlatTable root = s.file_.root();
  s.id_ = id_of<ObjectId>(root.structure(kId, sizeof(ObjectId)), "a snapshot without its id");
  if (s.id_ != id) throw Error(ErrorCode::corrupt, "the file holds the snapshot " + base32(s.id_));
  if (root.has(kParent))
    s.parent_ = id_of<ObjectId>(root.structure(kParent, sizeof(ObjectId)), "a parent without id");
  s.written_at_ = root.number<std::uint64_t>(kWrittenAt, 0);
  s.message_ = root.text(kMessage);

  const FlatTables nodes = root.tables(kNodes);
  claims.take(std::uint64_t{nodes.size()} * sizeof(Node));
  s.nodes_.reserve(nodes.size());
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    const FlatTable table = nodes[i];
    Node node{};
    node.path = checked_path(table.text(kPath));
    node.document = table.bytes(kDocument);
    node.id = id_of<NodeId>(table.structure(kNodeId, sizeof(NodeId)), "a node without its id");
    const auto type = table.number<std::uint8_t>(kDataType, 0);
    if (type != kArrayData && type != kGroupData)
      throw Error(ErrorCode::not_supported,
                  fmt::format("the node '/{}' is neither an array nor a group",
                              printable(std::string(node.path))));
    node.is_array = type == kArrayData;
    node.first_use = static_cast<std::uint32_t>(s.uses_.size());
    if (node.is_array) {
      const FlatTables uses = table.table(kData, "an array without data").tables(kManifests);
      claims.take(std::uint64_t{uses.size()} * sizeof(ManifestUse));
      for (std::uint32_t u = 0; u < uses.size(); ++u) {
        const FlatTable use = uses[u];
        const FlatVector extents = use.vector(kExtents, sizeof(ChunkIndexRange));
        if (extents.count > kMaxRank) throw_flat_damage("an array of too many dimensions");
        claims.take(extents.bytes.size());
        s.uses_.push_back(
            {id_of<ObjectId>(use.structure(kUseId, sizeof(ObjectId)), "a manifest without its id"),
             static_cast<std::uint32_t>(s.extents_.size()), extents.count});
        for (std::uint32_t d = 0; d < extents.count; ++d)
          s.extents_.push_back({little_endian<std::uint32_t>(extents.at(d), 0),
                                little_endian<std::uint32_t>(extents.at(d), 4)});
      }
      node.uses = uses.size();
    }
    s.nodes_.push_back(node);
  }
  std::sort(s.nodes_.begin(), s.nodes_.end(),
            [](const Node& a, const Node& b) { return a.path < b.path; });
  const auto twice =
      std::adjacent_find(s.nodes_.begin(), s.nodes_.end(),
                         [](const Node& a, const Node& b) { return a.path == b.path; });
  if (twice != s.nodes_.end())
    throw Error(ErrorCode::corrupt,
                fmt::format("two nodes have the path '/{}'", printable(std::string(twice->path))));

  const FlatVector files = root.vector(kFiles, kFileStructBytes);
  const FlatTables files_v2 = root.tables(kFilesV2);
  claims.take((std::uint64_t{files.count} + files_v2.size()) * sizeof(ManifestFile));
  for (std::uint32_t i = 0; i < files.count; ++i) {
    const Bytes file = files.at(i);
    s.files_.push_back({id_of<ObjectId>(file.first(sizeof(ObjectId)), "a manifest without its id"),
                        little_endian<std::uint64_t>(file, kFileBytesAt),
                        little_endian<std::uint32_t>(file, kFileReferencesAt)});
  }
  for (std::uint32_t i = 0; i < files_v2.size(); ++i) {
    const FlatTable file = files_v2[i];
    s.files_.push_back(
        {id_of<ObjectId>(file.structure(kFileId, sizeof(ObjectId)), "a manifest without its id"),
         file.number<std::uint64_t>(kFileBytes, 0),
         file.number<std::uint32_t>(kFileReferences, 0)});
  }
  std::sort(s.files_.begin(), s.files_.end(),
            [](const ManifestFile& a, const ManifestFile& b) { return a.id < b.id; });
  s.memory_ = claims.used();
  return result;
}

const Node* Snapshot::find(std::string_view path) const {
  const auto it =
      std::lower_bound(nodes_.begin(), nodes_.end(), path,
                       [](const Node& node, std::string_view p) { return node.path < p; });
  return it != nodes_.end() && it->path == path ? &*it : nullptr;
}

std::vector<Store::Entry> Snapshot::list(const std::string& prefix) const {
  std::vector<Store::Entry> entries;
  ListingMemory memory;
  const auto add = [&](std::string_view name, bool is_prefix) {
    entries.push_back({std::string(name), is_prefix});
    memory.add(entries.back(), prefix);
  };
  if (find(prefix) != nullptr) add("zarr.json", false);
  const std::string begin = prefix.empty() ? "" : prefix + "/";
  auto it = std::lower_bound(nodes_.begin(), nodes_.end(), begin,
                             [](const Node& node, const std::string& p) { return node.path < p; });
  std::string_view last;
  for (; it != nodes_.end() && it->path.starts_with(begin); ++it) {
    std::string_view name = it->path.substr(begin.size());
    name = name.substr(0, name.find('/'));
    if (name.empty() || name == last) continue;
    last = name;
    add(name, true);
  }
  std::sort(entries.begin(), entries.end(), [](const Store::Entry& a, const Store::Entry& b) {
    return a.name != b.name ? a.name < b.name : a.is_prefix > b.is_prefix;
  });
  entries.erase(std::unique(entries.begin(), entries.end(),
                            [](const auto& a, const auto& b) { return a.name == b.name; }),
                entries.end());
  return entries;
}

const ManifestUse* Snapshot::manifest_of(const Node& array,
                                         const std::vector<std::uint32_t>& chunk) const {
  for (std::uint32_t u = 0; u < array.uses; ++u) {
    const ManifestUse& use = uses_[array.first_use + u];
    // Old writers gave arrays without dimensions one.
    const bool old_scalar = chunk.empty() && use.rank == 1;
    if (use.rank != 0 && use.rank != chunk.size() && !old_scalar)
      throw Error(ErrorCode::corrupt,
                  fmt::format("the snapshot gives the array {} dimensions where it has {}",
                              use.rank, chunk.size()));
    bool inside = true;
    for (std::uint32_t d = 0; d < use.rank && inside; ++d) {
      const ChunkIndexRange& range = extents_[use.extents + d];
      const std::uint32_t index = old_scalar ? 0 : chunk[d];
      inside = range.from <= index && index < range.to;
    }
    if (inside) return &use;
  }
  return nullptr;
}

bool Snapshot::may_hold(const ManifestUse& use, const std::vector<std::uint32_t>& begin) const {
  for (std::size_t d = 0; d < std::min<std::size_t>(use.rank, begin.size()); ++d) {
    const ChunkIndexRange& range = extents_[use.extents + d];
    if (begin[d] < range.from || begin[d] >= range.to) return false;
  }
  return true;
}

const Snapshot::ManifestFile* Snapshot::manifest_file(const ObjectId& id) const {
  const auto it = std::lower_bound(
      files_.begin(), files_.end(), id,
      [](const ManifestFile& file, const ObjectId& wanted) { return file.id < wanted; });
  return it != files_.end() && it->id == id ? &*it : nullptr;
}

}  // namespace batchfs::icechunk
