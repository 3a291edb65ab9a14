#pragma once
// The reading of a store that a process serves first. A process that continues a session
// (fs/session_state.h) serves the session's newest reading: the same state of the store, with the
// versions of its objects. The metadata of an older state are in the store no more, but in Icechunk
// repositories: where the store has changed, another reading begins, or the process refuses.

#include <memory>
#include <string>
#include <vector>

#include "tools/service/generations/generation.h"

namespace batchfs {

/// Reads the store and resolves the views. `refusal`: why a session is not continued where the
/// store has changed. Empty: then another reading begins, as after a refresh; as long as the views
/// do not fit the store, half a minute at most, it is tried again; for two seconds where something
/// is missing. Throws stale, and what reading
/// throws.
std::shared_ptr<Generation> first_generation(const GenerationOptions& options, Engine& engine,
                                             Log& log, const std::string& refusal = "");

/// The snapshot of an Icechunk repository that `identity` names, if `options` follow the branch
/// that it is of; else empty. The branch may have moved on.
std::string pinned_snapshot(const std::string& identity, const IcechunkOptions& options);

/// The same of further stores, each for itself.
void pin_others(const std::string& identity, std::vector<StoreOptions::Named>& others);

}  // namespace batchfs
