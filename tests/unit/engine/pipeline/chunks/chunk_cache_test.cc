#include "engine/pipeline/chunks/chunk_cache.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace chunk_cache_test {

const Array* array_number(int i) {
  return reinterpret_cast<const Array*>(static_cast<std::uintptr_t>(i) * 64);
}
const Box kBox{{0}, {4}};

DecodedChunk chunk() {
  auto memory = std::make_shared<int>(0);
  return {kBox, reinterpret_cast<const std::byte*>(memory.get()), {4}, memory};
}

TEST(ChunkCache, FindsOnlyWhatHoldsTheNeed) {
  Counters counters;
  ChunkCache cache(counters);
  const ChunkKey key{array_number(1), 7};
  cache.insert(key, nullptr, chunk(), 16);
  EXPECT_TRUE(cache.find(key, {{1}, {2}}));
  EXPECT_FALSE(cache.find(key, {{1}, {4}}));
  EXPECT_FALSE(cache.find({array_number(2), 7}, kBox));
  EXPECT_EQ(counters.chunk_cache_hits.load(), 1u);
  EXPECT_EQ(cache.bytes(), 16u);
}

TEST(ChunkCache, FillValuesOfWhatDoesNotExistAreKeptForAWhileOnly) {
  Counters counters;
  ChunkCache cache(counters), forgetful(counters, std::chrono::seconds(0));
  const ChunkKey key{array_number(1), 7};
  DecodedChunk missing = chunk();
  missing.object_missing = true;
  cache.insert(key, nullptr, missing, 16);
  EXPECT_TRUE(cache.holds(key, kBox));
  EXPECT_TRUE(cache.find(key, kBox));
  forgetful.insert(key, nullptr, missing, 16);
  EXPECT_FALSE(forgetful.holds(key, kBox));
  EXPECT_FALSE(forgetful.find(key, kBox));
  EXPECT_EQ(forgetful.bytes(), 0u);
  forgetful.insert(key, nullptr, chunk(), 16);
  EXPECT_TRUE(forgetful.find(key, kBox));
}

TEST(ChunkCache, DropsTheFarthestNextUseFirstAndTheUnknownBeforeAll) {
  Counters counters;
  ChunkCache cache(counters);
  for (int i = 0; i < 4; ++i) cache.insert({array_number(1), i}, nullptr, chunk(), 16);
  cache.add_use({array_number(1), 0}, 50);
  cache.add_use({array_number(1), 1}, 10);
  cache.add_use({array_number(1), 1}, 90);
  cache.find({array_number(1), 2},
             kBox);  // 3 is now the least recently used of those without a use
  auto left = [&] {
    std::string text;
    for (int i = 0; i < 4; ++i)
      if (cache.find({array_number(1), i}, kBox)) text += static_cast<char>('0' + i);
    return text;
  };
  EXPECT_TRUE(cache.evict_one());
  EXPECT_EQ(left(), "012");
  EXPECT_TRUE(cache.evict_one());
  EXPECT_EQ(left(), "01");
  EXPECT_FALSE(cache.evict_one(50));  // nothing has a later next use
  EXPECT_TRUE(cache.evict_one());
  EXPECT_EQ(left(), "1");
  cache.remove_use({array_number(1), 1}, 10);
  EXPECT_FALSE(cache.evict_one(90));
  EXPECT_TRUE(cache.evict_one(89));
  EXPECT_EQ(cache.bytes(), 0u);
  EXPECT_FALSE(cache.evict_one());
}

TEST(ChunkCache, RemembersChunksInBatchesOnlyWhileTheyLive) {
  Counters counters;
  ChunkCache cache(counters);
  DecodedChunk in_batch = chunk();
  std::shared_ptr<const void> batch = in_batch.memory;
  cache.insert_weak({array_number(1), 0}, nullptr, in_batch);
  in_batch.memory.reset();
  EXPECT_EQ(cache.bytes(), 0u);
  EXPECT_TRUE(cache.find({array_number(1), 0}, kBox));
  batch.reset();
  EXPECT_FALSE(cache.find({array_number(1), 0}, kBox));
}

TEST(ChunkCache, KeepsChunksAsTheyAreStored) {
  Counters counters;
  Budget budget(1000);
  ChunkCache cache(counters);
  const ChunkKey key{array_number(1), 0};
  auto kept = std::make_shared<KeptChunk>();
  kept->encoded.missing = false;
  kept->encoded.bytes = Buffer(100);
  kept->reservation = budget.reserve(100);
  cache.insert(key, nullptr, chunk(), 16);
  cache.insert_stored(key, nullptr, kept);
  const KeptChunk* stored = kept.get();
  kept.reset();
  EXPECT_EQ(cache.find_stored(key).get(), stored);
  EXPECT_FALSE(cache.find(key, kBox));          // it took the decoded one's place
  EXPECT_TRUE(cache.holds(key, {{0}, {400}}));  // every part is available from it
  EXPECT_GE(cache.bytes(), 100u);
  EXPECT_EQ(budget.used(), 100u);
  EXPECT_TRUE(cache.evict_one());
  EXPECT_EQ(budget.used(), 0u);
  EXPECT_FALSE(cache.holds(key, kBox));
  EXPECT_EQ(cache.find_stored(key), nullptr);
}

TEST(ChunkCache, CountsTheUsesToCome) {
  Counters counters;
  ChunkCache cache(counters);
  const ChunkKey key{array_number(1), 0};
  EXPECT_EQ(cache.uses(key), 0u);
  cache.add_use(key, 3);
  cache.add_use(key, 3);
  cache.add_use(key, 8);
  EXPECT_EQ(cache.uses(key), 3u);
  EXPECT_EQ(cache.next_use(key), 3u);
  cache.remove_use(key, 3);
  EXPECT_EQ(cache.uses(key), 2u);
  cache.set_horizon(7, false);
  EXPECT_EQ(cache.uses(key), 1u);
  EXPECT_EQ(cache.next_use(key), 3u);
  cache.set_horizon(2, false);
  EXPECT_EQ(cache.uses(key), 0u);
  EXPECT_EQ(cache.next_use(key), std::nullopt) << "it cannot be kept for so long";
  EXPECT_EQ(cache.next_use({array_number(2), 0}), std::nullopt);
}

TEST(ChunkCache, AUseThatHasBegunIsNotToComeButKeepsItsChunkLongest) {
  Counters counters;
  ChunkCache cache(counters);
  const Array* array = array_number(1);
  const ChunkKey begun{array, 0}, soon{array, 1};
  for (const ChunkKey& key : {begun, soon}) cache.insert(key, nullptr, chunk(), 16);
  cache.add_use(begun, 5);
  cache.add_use(begun, 9);
  cache.add_use(soon, 3);
  cache.begin_use(begun, 5);
  EXPECT_EQ(cache.uses(begun), 1u);
  EXPECT_EQ(cache.next_use(begun), 9u);
  cache.remove_use(begun, 9);
  EXPECT_EQ(cache.uses(begun), 0u);
  EXPECT_EQ(cache.next_use(begun), std::nullopt);
  EXPECT_TRUE(cache.evict_one());
  EXPECT_TRUE(cache.holds(begun, kBox));
  EXPECT_FALSE(cache.holds(soon, kBox));
  EXPECT_TRUE(cache.evict_one()) << "memory is never held for good";
  cache.remove_use(begun, ChunkCache::kBegun);
}

TEST(ChunkCache, KeepsFewChunksOfAReaderThatPasses) {
  Counters counters;
  ChunkCache cache(counters);
  const std::uint64_t bytes = 50 << 20;
  cache.insert({array_number(2), 0}, nullptr, chunk(), bytes);  // a view's: stays
  for (int i = 0; i < 5; ++i) cache.insert({array_number(1), i}, nullptr, chunk(), bytes, true);
  EXPECT_TRUE(cache.find({array_number(2), 0}, kBox));
  EXPECT_FALSE(cache.find({array_number(1), 2}, kBox));
  EXPECT_TRUE(cache.find({array_number(1), 3}, kBox));
  EXPECT_TRUE(cache.find({array_number(1), 4}, kBox));
  EXPECT_EQ(cache.bytes(), 3 * bytes);
}

TEST(ChunkCache, ChunksThatAreToStayGoBehindOthersWithoutAUse) {
  Counters counters;
  ChunkCache cache(counters);
  const ChunkKey kept{array_number(1), 0}, other{array_number(2), 0}, used{array_number(2), 1};
  for (const ChunkKey& key : {kept, other, used}) cache.insert(key, nullptr, chunk(), 16);
  cache.add_use(used, 9);
  cache.keep_arrays({kept.array}, 40);
  EXPECT_EQ(cache.missing_bytes(), 24u);
  EXPECT_TRUE(cache.evict_one(ChunkCache::kSpared));
  EXPECT_TRUE(cache.holds(kept, kBox) && cache.holds(used, kBox));
  EXPECT_FALSE(cache.evict_one(ChunkCache::kSpared));
  EXPECT_FALSE(cache.is_pressed());
  EXPECT_TRUE(cache.evict_one(20)) << "for what is worth more";
  EXPECT_FALSE(cache.holds(kept, kBox));
  EXPECT_EQ(cache.missing_bytes(), 40u);
  EXPECT_TRUE(cache.evict_one());
  EXPECT_TRUE(cache.is_pressed()) << "it had a use";
  cache.insert(kept, nullptr, chunk(), 16);
  cache.keep_arrays({}, 0);
  EXPECT_EQ(cache.missing_bytes(), 0u);
  EXPECT_TRUE(cache.evict_one(ChunkCache::kSpared));
}

TEST(ChunkCache, EntriesCountOnceTheyAreMany) {
  Counters counters;
  ChunkCache cache(counters);
  EXPECT_EQ(cache.memory_of(100), 100u);
  for (std::int64_t i = 0; i < ChunkCache::kFreeEntries; ++i)
    cache.insert({array_number(1), i}, nullptr, chunk(), 1);
  EXPECT_EQ(cache.memory_of(100), 100u + ChunkCache::kEntryBytes);
  EXPECT_EQ(ChunkCache::memory_of_all(ChunkCache::kFreeEntries + 2, 100),
            100.0 * (ChunkCache::kFreeEntries + 2) + 2 * ChunkCache::kEntryBytes);
}

}  // namespace chunk_cache_test
}  // namespace batchfs
