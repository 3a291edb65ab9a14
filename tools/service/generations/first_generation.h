#pragma once
// The first reading of a store that a process serves. A process that continues a session
// (fs/session_state.h) serves the session's newest reading: the same state of the store, with the
// versions of its objects. A store keeps the metadata of an older state only in Icechunk
// repositories: if the store has changed, another reading begins, or the process refuses.

#include <memory>
#include <string>
#include <vector>

#include "tools/service/generations/generation.h"

namespace batchfs {

/// Reads the store and resolves the views. `refusal`: why a session is not continued if the store
/// has changed. Empty: then another reading begins, as after a refresh; while the views do not fit
/// the store, it is retried for half a minute at most, or for two seconds if something is missing.
/// Throws stale, and the errors of reading.
std::shared_ptr<Generation> first_generation(const GenerationOptions& options, Engine& engine,
                                             Log& log, const std::string& refusal = "");

/// The snapshot of an Icechunk repository in `identity`, if `options` follow its branch; else
/// empty. The branch may have advanced.
std::string pinned_snapshot(const std::string& identity, const IcechunkOptions& options);

/// Does the same for each of the further stores.
void pin_others(const std::string& identity, std::vector<StoreOptions::Named>& others);

}  // namespace batchfs
