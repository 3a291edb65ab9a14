#include "fs/control/mount_state.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/unit/engine/store/memory_store.h"

namespace batchfs {
namespace mount_state_test {

TEST(MountState, IsReadFromTheEngineTheStoreAndTheProcess) {
  struct Counting final : MemoryStore {
    std::vector<Counter> counters() const override { return {{"requests", 2}, {"via_hits", 1}}; }
  };
  const std::vector<std::shared_ptr<Store>> stores{
      std::make_shared<MemoryStore>(), std::make_shared<Counting>(), std::make_shared<Counting>()};
  Log log;
  Engine engine({.threads = 2, .memory = 256 << 20}, log);
  engine.counters().errors += 3;
  const MountState state = read_mount_state(engine, stores);
  EXPECT_EQ(state.pid, ::getpid());
  EXPECT_EQ(state.memory_budget, std::uint64_t{256} << 20);
  EXPECT_GT(state.memory_resident, 0u);
  EXPECT_EQ(state.engine.threads, 2);
  EXPECT_EQ(state.counters.size(), counter_table().size());
  EXPECT_EQ(state.counter("errors"), 3u);
  EXPECT_EQ(state.counter("no such counter"), 0u);
  EXPECT_TRUE(state.streams.empty());
  EXPECT_TRUE(state.handoff.is_null());
  ASSERT_EQ(state.store.size(), 2u);
  EXPECT_EQ(state.store[0].value, 4u);
  EXPECT_EQ(state.store[1].name, "via_hits");
}

}  // namespace mount_state_test
}  // namespace batchfs
