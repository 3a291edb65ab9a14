#pragma once
// The store and the views that a mount or a server has, for commands that look at them themselves.

#include <optional>
#include <string>
#include <vector>

namespace batchfs {

struct ServedStore {
  std::string store, group;        // group: as it was typed; empty: the root
  std::vector<std::string> views;  // files; "-": read from standard input
};

/// nullopt: `place` is neither a mount nor a socket, but a store. Throws what StateSource throws,
/// and corrupt where the daemon tells of no store.
std::optional<ServedStore> served_store(const std::string& place);

}  // namespace batchfs
