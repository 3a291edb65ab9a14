#include "engine/telemetry/counters.h"

#include <set>

#include <gtest/gtest.h>

namespace batchfs {
namespace counters_test {

TEST(CounterTable, NamesEveryCounterOnce) {
  std::set<std::string_view> names;
  for (const CounterInfo& info : counter_table()) {
    EXPECT_TRUE(names.insert(info.name).second);
    EXPECT_FALSE(info.help.empty());
  }
  EXPECT_EQ(names.size() * sizeof(std::atomic<std::uint64_t>), sizeof(Counters));
}

}  // namespace counters_test
}  // namespace batchfs
