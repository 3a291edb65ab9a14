#include "engine/view/plan/chunk_set.h"

#include <random>
#include <set>

#include <gtest/gtest.h>

#include "engine/base/error.h"

namespace batchfs {
namespace chunk_set_test {

void expect_each_once(std::int64_t chunks, int draws) {
  Budget budget(UINT64_C(1) << 30);
  const ChunkSet::Reserve reserve = reserve_from(budget);
  std::set<std::int64_t> expected;
  {
    ChunkSet set(chunks);
    std::mt19937_64 random(1);
    for (int i = 0; i < draws; ++i) {
      const auto chunk = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(chunks));
      EXPECT_EQ(set.insert(chunk, reserve), expected.insert(chunk).second) << chunk;
    }
    EXPECT_EQ(set.insert(chunks - 1, reserve), expected.insert(chunks - 1).second);
    EXPECT_FALSE(set.insert(chunks - 1, reserve));
    // Sixteen bytes for each chunk, to which the set doubles; or a bit for each of the array.
    EXPECT_LE(budget.used(), std::min<std::uint64_t>(expected.size() * 32 + 512,
                                                     static_cast<std::uint64_t>(chunks) / 8 + 8));
  }
  EXPECT_EQ(budget.used(), 0u);
}

TEST(ChunkSet, FindsEachChunkOnce) {
  expect_each_once(1, 3);
  expect_each_once(64, 200);
  expect_each_once(100'000, 1'000);
  expect_each_once(100'000, 300'000);
  expect_each_once(INT64_C(1) << 62, 50'000);
}

TEST(ChunkSet, ThrowsWhereThereIsNoMemory) {
  Budget budget(10'000);
  const ChunkSet::Reserve reserve = reserve_from(budget);
  ChunkSet set(INT64_C(1) << 40);
  std::int64_t inserted = 0;
  try {
    for (; inserted < 10'000; ++inserted) set.insert(inserted * 1000, reserve);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::no_memory);
    EXPECT_NE(std::string(error.what()).find("--memory"), std::string::npos) << error.what();
  }
  EXPECT_GT(inserted, 100);
  EXPECT_LE(budget.used(), budget.limit());
}

}  // namespace chunk_set_test
}  // namespace batchfs
