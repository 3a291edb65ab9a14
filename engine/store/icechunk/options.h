#pragma once
// A user's options for an Icechunk repository.

#include <cstdint>
#include <optional>
#include <string>

namespace batchfs {

/// At most one of branch, tag and snapshot; `as_of` goes with a branch. None: the branch main.
struct IcechunkOptions {
  std::string branch, tag, snapshot;
  /// For a branch, the state at this time: microseconds since 1970.
  std::optional<std::int64_t> as_of;
  /// The id of the snapshot that a mount shows, whatever was committed after it began; empty: none.
  std::string pinned;

  bool names_a_version() const {
    return !branch.empty() || !tag.empty() || !snapshot.empty() || as_of.has_value();
  }
};

}  // namespace batchfs
