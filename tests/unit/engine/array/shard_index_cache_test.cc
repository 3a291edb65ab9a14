#include "engine/array/shard_index_cache.h"

#include <thread>

#include <gtest/gtest.h>

#include "tests/unit/engine/codec/damage.h"

namespace batchfs {
namespace shard_index_cache_test {

/// An index of 4 inner chunks, 64 bytes.
ShardIndexCache::IndexPtr index() {
  const Json configuration = parse_json(R"({"chunk_shape": [2, 3],
      "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
      "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]})",
                                        "test");
  const ChunkLayout layout{{4, 6}, make_type(Kind::signed_int, 4), hex("ffffffff")};
  const ShardLayout shard(JsonRef(configuration, "sharding_indexed"), layout);
  return std::make_shared<const ShardIndex>(shard, std::vector<std::byte>(64), 1000);
}

TEST(ShardIndexCache, TellsMissingShardsFromThoseItDoesNotKnow) {
  ShardIndexCache cache;
  EXPECT_FALSE(cache.find("a/0"));
  cache.insert("a/0", nullptr);
  ASSERT_TRUE(cache.find("a/0"));
  EXPECT_EQ(*cache.find("a/0"), nullptr);
  EXPECT_FALSE(cache.find("a/1"));
}

TEST(ShardIndexCache, KeepsTheFirstOfAKey) {
  ShardIndexCache cache;
  const auto first = index();
  cache.insert("a/0", first);
  cache.insert("a/0", index());
  cache.insert("a/0", nullptr);
  EXPECT_EQ(*cache.find("a/0"), first);
}

TEST(ShardIndexCache, AnIndexTakesThePlaceOfAnAbsence) {
  ShardIndexCache cache;
  const auto first = index();
  cache.insert("a/0", nullptr);
  cache.insert("a/0", first);
  EXPECT_EQ(*cache.find("a/0"), first);
  cache.insert("a/0", nullptr);
  EXPECT_EQ(*cache.find("a/0"), first);
}

TEST(ShardIndexCache, AnAbsenceIsForgottenInTime) {
  ShardIndexCache never(1000, std::chrono::seconds(0));
  never.insert("a", nullptr);
  EXPECT_FALSE(never.find("a"));
  ShardIndexCache soon(1000, std::chrono::milliseconds(50));
  soon.insert("a", nullptr);
  soon.insert("b", index());
  while (soon.find("a")) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_TRUE(soon.find("b"));
}

TEST(ShardIndexCache, TheLeastRecentlyUsedGo) {
  const auto shared = index();
  ASSERT_EQ(shared->bytes(), 64u);
  ShardIndexCache cache(3 * (256 + 64));
  for (const char* key : {"a", "b", "c"}) cache.insert(key, shared);
  EXPECT_TRUE(cache.find("a"));  // "b" is the oldest now
  cache.insert("d", shared);
  EXPECT_TRUE(cache.find("a"));
  EXPECT_FALSE(cache.find("b"));
  EXPECT_TRUE(cache.find("c"));
  EXPECT_TRUE(cache.find("d"));
  cache.insert("b", shared);
  EXPECT_FALSE(cache.find("a"));
}

TEST(ShardIndexCache, OneThatIsTooLargeIsKeptAlone) {
  ShardIndexCache cache(10);
  cache.insert("a", index());
  EXPECT_TRUE(cache.find("a"));
  cache.insert("b", nullptr);
  EXPECT_FALSE(cache.find("a"));
  EXPECT_TRUE(cache.find("b"));
}

}  // namespace shard_index_cache_test
}  // namespace batchfs
