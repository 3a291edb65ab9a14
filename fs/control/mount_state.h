#pragma once
// What a mount is doing at one moment: what status.json and metrics show.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/base/budget.h"
#include "engine/base/json.h"
#include "engine/pipeline/engine.h"
#include "engine/store/store.h"

namespace batchfs {

/// Times are in nanoseconds, memory in bytes.
struct MountState {
  struct Counter {
    std::string_view name, help;  // of counter_table()
    std::uint64_t value = 0;
  };

  int pid = 0;
  bool passthrough = false;
  Json snapshot;  // of the store, that new opens see; null: not told
  std::uint64_t generations = 1;
  std::uint64_t kernel_names = 0;  // that the kernel keeps
  std::uint64_t uptime = 0;
  std::vector<Counter> counters;
  std::uint64_t memory_budget = 0, memory_used = 0;
  std::uint64_t memory_resident = 0;  // of the process, mapped batches included; 0: not known
  std::uint64_t memory_spare = 0;
  /// What readers still map of files that they have closed counts against the budget, but nobody
  /// can take it back.
  std::uint64_t memory_mapped_after_close = 0;
  std::optional<CgroupMemory> cgroup;
  Engine::State engine;
  LatencyHistogram waits;
  std::vector<StreamStatistics::Stream> streams;
  Json handoff;  // null: no hand-off
  std::vector<Store::Counter> store;

  /// Of a counter of the table. 0 when it is not there.
  std::uint64_t counter(std::string_view name) const;
};

/// Reads all but `passthrough`, `snapshot`, `generations`, `kernel_names`, `uptime` and `handoff`.
/// Counters of the same name of several stores are added up.
MountState read_mount_state(Engine& engine, std::span<const std::shared_ptr<Store>> stores);

}  // namespace batchfs
