#pragma once
// The store and the views that a mount or a server has, for commands that look at them themselves.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/json.h"
#include "tools/cli/store_options.h"

namespace batchfs {

struct ServedStore {
  std::string store, group;                 // group: as it was typed; empty: the root
  std::vector<std::string> views;           // files; "-": read from standard input
  std::vector<StoreOptions::Named> others;  // of its --store
  std::map<std::string, std::vector<std::string>> series;

  /// What `options` do not name themselves: a group, and the further stores. The store is this one.
  void complete(StoreOptions& options) const;
};

/// nullopt: `place` is neither a mount nor a socket, but a store. Throws what StateSource throws,
/// and corrupt where the daemon tells of no store.
std::optional<ServedStore> served_store(const std::string& place);

/// Adds the stores of --store to what a daemon says of itself.
void tell_other_stores(const OpenedStore& opened, Json& config);

}  // namespace batchfs
