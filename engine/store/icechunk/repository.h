#pragma once
// The entry point of an Icechunk repository: branches, tags and the history of snapshots.
//
// Version 2 keeps all of it in one file, `repo`; version 1 has a file for each branch and tag, and
// each snapshot names its parent. Where both are, `repo` counts.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/store/icechunk/file.h"
#include "engine/store/icechunk/object_id.h"
#include "engine/store/icechunk/options.h"
#include "engine/store/icechunk/signs.h"
#include "engine/store/icechunk/snapshot.h"
#include "engine/store/store.h"

namespace batchfs::icechunk {

struct Ref {
  std::string name;
  ObjectId snapshot;
};

struct Commit {
  ObjectId id;
  std::optional<ObjectId> parent;
  std::uint64_t written_at = 0;  // microseconds since 1970
  std::string message;
};

/// Are these the signs of a repository?
bool is_repository(const RepositorySigns& signs);

std::string snapshot_key(const ObjectId& id);
std::string manifest_key(const ObjectId& id);
std::string chunk_key(const ObjectId& id);

/// Error for a referenced object that does not exist; `what` names its kind.
Error removed(const std::string& what);

/// Not thread-safe.
class Repository {
 public:
  /// Returns nullptr where there is no repository. Reads what `options` need and `signs` lack, in
  /// one round trip. `entry` reads objects that change, in their present state. Throws what reading
  /// throws, corrupt, not_supported.
  static std::unique_ptr<Repository> find(std::shared_ptr<Store> entry,
                                          const IcechunkOptions& options, std::uint64_t memory,
                                          RepositorySigns signs = {});

  int version() const { return file_ ? 2 : 1; }

  struct Choice {
    ObjectId snapshot;
    std::string words;  // "branch main"
  };
  /// Resolves the options that were passed to find(). Throws not_found, invalid_argument.
  Choice choose();

  std::vector<Ref> branches();
  std::vector<Ref> tags();
  /// From a snapshot back to the first, at most this many.
  std::vector<Commit> history(const ObjectId& from, std::size_t most);

  /// The configuration that it names, a FlexBuffer; empty: none, or of version 1.
  Bytes config() const { return config_; }

 private:
  Repository(std::shared_ptr<Store> entry, const IcechunkOptions& options, std::uint64_t memory);
  void open_entry(const Buffer& bytes);
  Choice choose_old();
  ObjectId as_of(const std::string& branch, ObjectId newest);
  std::vector<Ref> old_refs(const std::string& kind);
  Error no_ref(const char* kind, const std::string& name, const std::vector<Ref>& refs) const;
  /// The commit of a snapshot; throws not_found.
  Commit commit(const ObjectId& id);

  const std::shared_ptr<Store> entry_;
  const IcechunkOptions options_;
  const std::uint64_t memory_;

  std::optional<File> file_;  // version 2
  std::vector<Ref> branches_, tags_;
  std::vector<std::string> deleted_tags_;
  std::vector<Commit> commits_;  // sorted by id
  Bytes config_;

  std::optional<ObjectId> old_branch_;  // version 1: read at the same time
};

}  // namespace batchfs::icechunk
