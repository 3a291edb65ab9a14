#pragma once
// An Icechunk repository as a store: a snapshot of it, chosen when it is opened, whatever is
// committed later. Format: Icechunk's specification, versions 1 to 2.1.
//
// Keys are those of the Zarr store that Icechunk shows: "a/b/zarr.json", "a/b/c/0/1". Metadata is
// in the snapshot. A chunk's manifest locates its bytes: in itself, in an object of the repository,
// or in a file elsewhere. A chunk that no manifest names was never written: missing. An object that
// a manifest names and that does not exist is an Error, never missing.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/store/icechunk/options.h"
#include "engine/store/icechunk/signs.h"
#include "engine/store/store.h"
#include "engine/store/virtual/virtual_options.h"

namespace batchfs {

struct IcechunkPlaces {
  /// Reads objects that change, as they are now: no cache, no versions.
  std::shared_ptr<Store> entry;
  /// Reads the others.
  std::shared_ptr<Store> objects;
  /// Opens a place outside of the repository that the user allowed to read.
  std::function<std::shared_ptr<Store>(const std::string& url)> open;
  VirtualOptions outside = {};
};

/// nullptr where there is no repository. `memory`: bytes of the budget. `signs`: the outcomes of
/// reads at the place, just now and past every cache. Throws not_found for a branch, tag or
/// snapshot that does not exist, corrupt, not_supported, no_memory, and what reading throws.
std::shared_ptr<Store> open_icechunk_store(const IcechunkPlaces& places,
                                           const IcechunkOptions& options, std::uint64_t memory,
                                           RepositorySigns signs = {});

/// Announces arrays that are going to be read: the manifests that are sure to be wanted are fetched
/// along with those of coordinates, a round trip less. Paths that are not arrays, and other stores,
/// are left out.
void expect_icechunk_arrays(Store& store, const std::vector<std::string>& paths);

/// The history of a repository, for people.
struct IcechunkLog {
  struct Snapshot {
    std::string id;
    std::uint64_t time;  // microseconds since 1970
    std::string message;
  };
  std::vector<Snapshot> history;                              // from the one that is shown back
  bool complete = true;                                       // else there are older ones
  std::vector<std::pair<std::string, std::string>> branches;  // name and id
  std::vector<std::pair<std::string, std::string>> tags;
};
/// nullopt for other stores. At most `most` snapshots. Throws what reading throws.
std::optional<IcechunkLog> icechunk_log(Store& store, std::size_t most);

}  // namespace batchfs
