#pragma once
// What users say about an Icechunk repository.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace batchfs {

/// At most one of branch, tag and snapshot; `as_of` goes with a branch. None: the branch main.
struct IcechunkOptions {
  std::string branch, tag, snapshot;
  /// Of a branch, the state at this time: microseconds since 1970.
  std::optional<std::int64_t> as_of;
  /// The id of the snapshot that a mount began with and goes on with, whatever was committed since;
  /// empty: none.
  std::string pinned;
  /// Chunks outside of the repository may be read below these: "PREFIX" or "PREFIX=URL", which is
  /// then read in PREFIX's place.
  std::vector<std::string> virtual_places;
  /// Compare ETags and times of the files that chunks outside of the repository lie in.
  bool virtual_checks = true;

  bool names_a_version() const {
    return !branch.empty() || !tag.empty() || !snapshot.empty() || as_of.has_value();
  }
};

}  // namespace batchfs
