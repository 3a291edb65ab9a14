#pragma once
// State of a mount at one moment, shown in status.json and in the metrics.

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
  Json snapshot;  // of the store, as new opens see it; null: unknown
  std::uint64_t generations = 1;
  std::uint64_t kernel_names = 0;  // names that the kernel keeps
  std::uint64_t uptime = 0;
  std::vector<Counter> counters;
  std::uint64_t memory_budget = 0, memory_used = 0;
  std::uint64_t memory_resident = 0;  // of the process, mapped batches included; 0: unknown
  std::uint64_t memory_spare = 0;
  /// Closed files that readers still map. They count against the budget but cannot be reclaimed.
  std::uint64_t memory_mapped_after_close = 0;
  std::optional<CgroupMemory> cgroup;
  Engine::State engine;
  LatencyHistogram waits;
  std::vector<StreamStatistics::Stream> streams;
  Json handoff;  // null: no hand-off
  std::vector<Store::Counter> store;

  /// The value of a counter of counter_table(); 0 if it is missing.
  std::uint64_t counter(std::string_view name) const;
};

/// Reads all but `passthrough`, `snapshot`, `generations`, `kernel_names`, `uptime` and `handoff`.
/// Sums counters of the same name over the stores.
MountState read_mount_state(Engine& engine, std::span<const std::shared_ptr<Store>> stores);

}  // namespace batchfs
