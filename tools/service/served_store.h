#pragma once
// The store and the views of a mount or a server, for commands that open them themselves.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/json.h"
#include "tools/cli/store_options.h"

namespace batchfs {

struct ServedStore {
  std::string store, group;                 // group: as typed; empty: the root
  std::vector<std::string> views;           // files; "-": read from standard input
  std::vector<StoreOptions::Named> others;  // of its --store
  std::map<std::string, std::vector<std::string>> series;

  /// Sets the store to this one, and the group and the further stores unless `options` name them.
  void complete(StoreOptions& options) const;
};

/// nullopt: `place` is neither a mount nor a socket, but a store. Throws the errors of StateSource,
/// and corrupt if the daemon reports no store.
std::optional<ServedStore> served_store(const std::string& place);

/// Adds the stores of --store to a daemon's description of itself.
void tell_other_stores(const OpenedStore& opened, Json& config);

}  // namespace batchfs
