#include "tools/show/chunk_presence.h"

#include <numeric>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/dataset/memory_data.h"
#include "tests/unit/engine/store/memory_store.h"

namespace batchfs {
namespace chunk_presence_test {

/// The presence of an array of `data`, with its objects in a store that lists them.
ChunkPresence presence_of(const MemoryData& data, const std::string& path,
                          const PresenceLimits& limits = {}) {
  MemoryStore store;
  for (const auto& [key, bytes] : data.store->objects) store.set(key, bytes);
  return chunk_presence(store, data.hierarchy.array(path), limits);
}

std::int64_t sum(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

TEST(ChunkPresence, CountsStoredObjectsByPosition) {
  MemoryData data;
  data.declare("t", "<f4", {"time", "x"}, {1000, 4}, {1, 2});
  for (int time = 0; time < 500; ++time)
    for (int x = 0; x < 2; ++x)
      if (time != 7) data.store->objects[fmt::format("t/{}.{}", time, x)] = "12345678";
  data.store->objects["t/2000.0"] = "outside";
  const ChunkPresence found = presence_of(data, "t");
  ASSERT_TRUE(found.is_known) << found.why_unknown;
  EXPECT_EQ(found.column_dim, 0u);
  EXPECT_EQ(found.columns, ChunkPresence::kMaxColumns);
  EXPECT_EQ(found.rows, 2);
  EXPECT_EQ(found.objects, 2000);
  EXPECT_EQ(found.stored, 998);
  EXPECT_EQ(sum(found.all), 2000);
  EXPECT_EQ(sum(found.found), 998);
  EXPECT_EQ(found.found[0], found.all[0] - 1);  // time 7
  EXPECT_EQ(found.found[1], found.all[1]);
  EXPECT_EQ(found.found.back(), 0);
}

TEST(ChunkPresence, ScalarsAndArraysWithoutElements) {
  MemoryData data;
  data.add<float>("s", "<f4", {}, {}, {1}).declare("none", "<f4", {"x"}, {0}, {1});
  const ChunkPresence scalar = presence_of(data, "s");
  EXPECT_TRUE(scalar.is_known);
  EXPECT_EQ(scalar.stored, 1);
  EXPECT_FALSE(presence_of(data, "none").is_known);
}

TEST(ChunkPresence, DoesNotListForLong) {
  MemoryData data;
  data.declare("t", "<f4", {"time"}, {1000}, {1});
  data.store->objects["t/0"] = "1234";
  PresenceLimits few;
  few.local_objects = few.remote_objects = 999;
  EXPECT_FALSE(presence_of(data, "t", few).is_known);
  PresenceLimits late;
  late.deadline = std::chrono::steady_clock::now() - std::chrono::seconds(1);
  const ChunkPresence found = presence_of(data, "t", late);
  EXPECT_FALSE(found.is_known);
  EXPECT_FALSE(found.why_unknown.empty());
}

// Opening an array refuses more chunks than can be counted; this is the maximum.
TEST(ChunkPresence, OfVeryManyChunks) {
  MemoryData data;
  data.declare("t", "|u1", {"a", "b"}, {std::int64_t{1} << 31, std::int64_t{1} << 31}, {1, 1});
  const ChunkPresence found = presence_of(data, "t");
  EXPECT_EQ(found.objects, std::int64_t{1} << 62);
  EXPECT_FALSE(found.is_known);
}

}  // namespace chunk_presence_test
}  // namespace batchfs
