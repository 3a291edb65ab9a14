#pragma once
// The reads at a place that detect what kind of store lies there.

#include <cstdint>
#include <optional>

#include "engine/store/store.h"

namespace batchfs {

/// By which an Icechunk repository is known, of version 2 and 1.
constexpr const char *kRepositoryEntry = "repo", *kMainBranch = "refs/branch.main/ref.json";
/// This much of the former is requested: all of it, unless the repository has a long history.
constexpr std::uint64_t kSignBytes = 64 << 10;

/// The outcomes of these two reads; nullopt: not read. They are not read again, which saves a round
/// trip.
struct RepositorySigns {
  std::optional<ReadOutcome> entry, main_branch;
};

}  // namespace batchfs
