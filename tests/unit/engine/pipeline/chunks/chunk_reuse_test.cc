#include "engine/pipeline/chunks/chunk_reuse.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace chunk_reuse_test {

/// Bytes that batches with these chunks, of 10 bytes each, decode.
double decoded(double kept, std::int64_t joined,
               std::initializer_list<std::initializer_list<int>> batches) {
  ChunkReuse reuse(kept, joined);
  for (const auto& batch : batches) {
    for (const int chunk : batch) reuse.use({nullptr, chunk}, 10, 12);
    reuse.next_batch();
  }
  return reuse.decoded();
}

TEST(ChunkReuse, WithoutRoomEachUseDecodes) {
  EXPECT_EQ(decoded(0, 1, {{1, 2}, {1, 2}, {2}}), 50);
  EXPECT_EQ(decoded(0, 1, {}), 0);
}

TEST(ChunkReuse, AChunkStaysWhileThoseUsedSinceHaveRoomBesideIt) {
  EXPECT_EQ(decoded(24, 1, {{1}, {2}, {1}, {3}, {1}, {2}}), 40);
  EXPECT_EQ(decoded(23, 1, {{1}, {2}, {1}, {3}, {1}, {2}}), 60);
  EXPECT_EQ(decoded(36, 1, {{1, 2, 3}, {1, 2, 3}, {1, 2, 3}}), 30);
  EXPECT_EQ(decoded(35, 1, {{1, 2, 3}, {1, 2, 3}, {1, 2, 3}}), 90);
}

TEST(ChunkReuse, BatchesThatJoinTakeTheirPartsAtOnce) {
  EXPECT_EQ(decoded(0, 2, {{1}, {1}, {1}, {1}}), 20);
  EXPECT_EQ(decoded(0, 3, {{1}, {1}, {1}, {1}}), 20);
  EXPECT_EQ(decoded(0, 4, {{1}, {1}, {1}, {1}}), 10);
  EXPECT_EQ(decoded(0, 3, {{1, 2}, {3}, {2}, {1}}), 40);
}

TEST(ChunkReuse, TheBetterOfBothWaysCounts) {
  EXPECT_EQ(decoded(24, 2, {{1, 2}, {3, 4}, {1, 2}, {3, 4}}), 80);
  EXPECT_EQ(decoded(48, 2, {{1, 2}, {3, 4}, {1, 2}, {3, 4}}), 40);
  EXPECT_EQ(decoded(24, 3, {{1, 2}, {3, 4}, {1, 2}, {3, 4}}), 40);
}

TEST(ChunkReuse, SharesOfTheMemory) {
  EXPECT_EQ(kept_memory(1000), 500u);
  EXPECT_EQ(joined_memory(1000, true), 750u);
  EXPECT_EQ(joined_memory(1000, false), 500u);
  EXPECT_EQ(joined_batches(750, 100), 7);
  EXPECT_EQ(joined_batches(750, 1000), 1);
  EXPECT_EQ(joined_batches(750, 0), kMaxJoined);
}

}  // namespace chunk_reuse_test
}  // namespace batchfs
