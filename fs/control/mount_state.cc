#include "fs/control/mount_state.h"

#include <algorithm>
#include <fstream>

#include <unistd.h>

namespace batchfs {

namespace {

/// Source: proc(5), statm.
std::uint64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t size = 0, resident = 0;
  statm >> size >> resident;
  return statm ? resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) : 0;
}

void add_up(const std::vector<Store::Counter>& counters, std::vector<Store::Counter>& sums) {
  for (const Store::Counter& counter : counters) {
    const auto sum = std::find_if(sums.begin(), sums.end(), [&counter](const Store::Counter& one) {
      return one.name == counter.name;
    });
    if (sum == sums.end())
      sums.push_back(counter);
    else
      sum->value += counter.value;
  }
}

}  // namespace

std::uint64_t MountState::counter(std::string_view name) const {
  const auto found = std::find_if(counters.begin(), counters.end(),
                                  [name](const Counter& one) { return one.name == name; });
  return found != counters.end() ? found->value : 0;
}

MountState read_mount_state(Engine& engine, std::span<const std::shared_ptr<Store>> stores) {
  MountState state;
  state.pid = ::getpid();
  for (const CounterInfo& info : counter_table())
    state.counters.push_back({info.name, info.help, (engine.counters().*info.value).load()});
  state.memory_budget = engine.budget().limit();
  state.memory_used = engine.budget().used();
  state.memory_resident = resident_bytes();
  state.memory_spare = engine.memory_files().spare_bytes();
  state.memory_mapped_after_close = engine.memory_files().mapped_by_others();
  state.cgroup = cgroup_memory();
  state.engine = engine.state();
  state.waits = engine.streams().waits();
  state.streams = engine.streams().list(Trace::now());
  for (const std::shared_ptr<Store>& store : stores) add_up(store->counters(), state.store);
  return state;
}

}  // namespace batchfs
