#include "fs/control/mount_state.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace mount_state_test {

TEST(MountState, IsReadFromTheEngineTheStoreAndTheProcess) {
  MemoryData data;
  Log log;
  Engine engine({.threads = 2, .memory = 256 << 20}, log);
  engine.counters().errors += 3;
  const MountState state = read_mount_state(engine, *data.store);
  EXPECT_EQ(state.pid, ::getpid());
  EXPECT_EQ(state.memory_budget, std::uint64_t{256} << 20);
  EXPECT_GT(state.memory_resident, 0u);
  EXPECT_EQ(state.engine.threads, 2);
  EXPECT_EQ(state.counters.size(), counter_table().size());
  EXPECT_EQ(state.counter("errors"), 3u);
  EXPECT_EQ(state.counter("no such counter"), 0u);
  EXPECT_TRUE(state.streams.empty());
  EXPECT_TRUE(state.handoff.is_null());
}

}  // namespace mount_state_test
}  // namespace batchfs
