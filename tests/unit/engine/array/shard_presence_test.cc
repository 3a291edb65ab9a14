#include "engine/array/shard_presence.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/store/memory_store.h"

namespace batchfs {
namespace shard_presence_test {

TEST(ShardPresence, BothCasesOfOneShardAreAMixture) {
  const Json zarray = {{"zarr_format", 2},   {"shape", {4, 3}},      {"chunks", {2, 3}},
                       {"dtype", "<i4"},     {"fill_value", 0},      {"order", "C"},
                       {"filters", nullptr}, {"compressor", nullptr}};
  const Array array(std::make_shared<MemoryStore>(),
                    std::make_shared<const ArrayMetadata>(
                        parse_array_v2("a", zarray, Json::object(), "a/.zarray")));
  ShardPresence shards;
  EXPECT_FALSE(shards.observe(array, 0, true));
  EXPECT_FALSE(shards.observe(array, 0, true));
  EXPECT_FALSE(shards.observe(array, 1, false));
  const auto mixture = shards.observe(array, 0, false);
  ASSERT_TRUE(mixture);
  EXPECT_EQ(mixture->code(), ErrorCode::stale);
  EXPECT_EQ(mixture->where(), "a");
  EXPECT_TRUE(shards.observe(array, 1, true));
}

}  // namespace shard_presence_test
}  // namespace batchfs
