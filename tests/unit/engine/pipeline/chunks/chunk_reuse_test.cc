#include "engine/pipeline/chunks/chunk_reuse.h"

#include <string>

#include <gtest/gtest.h>

namespace batchfs {
namespace chunk_reuse_test {

using Batches = std::initializer_list<std::initializer_list<int>>;

/// Chunks of 10 bytes, which take 12 and of which perhaps 2 are decoded before.
ChunkReuse reuse_of(Batches batches) {
  ChunkReuse reuse;
  for (const auto& batch : batches) {
    for (const int chunk : batch)
      reuse.use({.chunk = {nullptr, chunk}, .memory = 12, .decoded = 10, .more = 2});
    reuse.next_batch();
  }
  return reuse;
}

double decoded(double kept, std::int64_t joined, Batches batches) {
  return reuse_of(batches).decoded({.kept = kept, .joined = joined}).likely;
}

TEST(ChunkReuse, WithoutRoomEachUseDecodes) {
  EXPECT_EQ(decoded(0, 1, {{1, 2}, {1, 2}, {2}}), 50);
  EXPECT_EQ(decoded(0, 1, {}), 0);
  const ChunkReuse::Decoded all = reuse_of({{1, 2}, {1, 2}, {2}}).decoded({});
  EXPECT_EQ(all.least, 50);
  EXPECT_EQ(all.most, 60);
}

TEST(ChunkReuse, TheChunkWithTheSoonestNextUseStays) {
  EXPECT_EQ(decoded(12, 1, {{1}, {2}, {1}, {3}, {1}, {2}}), 40);
  EXPECT_EQ(decoded(11, 1, {{1}, {2}, {1}, {3}, {1}, {2}}), 60);
  // Two of three in turn stay where the least recently used would go each time.
  EXPECT_EQ(decoded(24, 1, {{1}, {2}, {3}, {1}, {2}, {3}, {1}, {2}, {3}}), 50);
  EXPECT_EQ(decoded(36, 1, {{1, 2, 3}, {1, 2, 3}, {1, 2, 3}}), 30);
}

TEST(ChunkReuse, BatchesThatJoinTakeTheirPartsAtOnce) {
  EXPECT_EQ(decoded(0, 2, {{1}, {1}, {1}, {1}}), 20);
  EXPECT_EQ(decoded(0, 3, {{1}, {1}, {1}, {1}}), 20);
  EXPECT_EQ(decoded(0, 4, {{1}, {1}, {1}, {1}}), 10);
  EXPECT_EQ(decoded(0, 3, {{1, 2}, {3}, {2}, {1}}), 40);
}

TEST(ChunkReuse, AChunkStaysForTheBatchesAfterThoseThatJoin) {
  // 1 and 2 have their next use after the batch that joins.
  EXPECT_EQ(decoded(0, 2, {{1, 2}, {1, 2}, {1}, {2}}), 40);
  EXPECT_EQ(decoded(12, 2, {{1, 2}, {1, 2}, {1}, {2}}), 30);
  EXPECT_EQ(decoded(24, 2, {{1, 2}, {1, 2}, {1}, {2}}), 20);
}

TEST(ChunkReuse, UsesThatAreTooFarAheadAreNotKnown) {
  const ChunkReuse reuse = reuse_of({{1}, {2}, {3}, {1}});
  EXPECT_EQ(reuse.decoded({.kept = 100}).likely, 30);
  EXPECT_EQ(reuse.decoded({.kept = 100, .known_batches = 3, .known_uses = 3}).likely, 30);
  EXPECT_EQ(reuse.decoded({.kept = 100, .known_batches = 2}).likely, 40);
  EXPECT_EQ(reuse.decoded({.kept = 100, .known_uses = 2}).likely, 40);
}

TEST(ChunkReuse, SomeChunksNeverStay) {
  ChunkReuse reuse;
  for (int batch = 0; batch < 3; ++batch) {
    reuse.use({.chunk = {nullptr, 1}, .memory = 0, .decoded = 10});
    reuse.next_batch();
  }
  EXPECT_EQ(reuse.decoded({.kept = 100}).likely, 30);
  EXPECT_EQ(reuse.decoded({.kept = 100, .joined = 3}).likely, 10);
  EXPECT_EQ(reuse.decoded({.kept = 100, .joined = 3}).most, 30) << "each may read its own part";
}

TEST(ChunkReuse, OfChunksThatAreDecodedInPartsEachUseNeedsItsOwn) {
  ChunkReuse reuse;
  for (const double part : {3, 0, 4}) {
    reuse.use({.chunk = {nullptr, 1}, .memory = 12, .decoded = 10, .part = part});
    reuse.next_batch();
  }
  for (const std::int64_t joined : {1, 3}) EXPECT_EQ(reuse.decoded({.joined = joined}).least, 7);
  EXPECT_EQ(reuse.decoded({}).likely, 30);
}

/// "1 decoded 0, 2 joined 1": chunk, kind and the batch that it is decoded for.
std::string sources(const ChunkReuse& reuse, const ChunkReuse::Rules& rules, std::int64_t batch) {
  std::string text;
  for (const ChunkReuse::Supply& source : reuse.supplies(rules, batch)) {
    const char* const kinds[] = {"decoded", "joined", "kept"};
    text += std::to_string(source.chunk.chunk) + " " + kinds[static_cast<int>(source.kind)] + " " +
            std::to_string(source.decoded_by) + ", later " + std::to_string(source.later) + "; ";
  }
  return text;
}

TEST(ChunkReuse, TheSourcesOfABatch) {
  const ChunkReuse reuse = reuse_of({{1, 2}, {1}, {2, 3}, {1, 3}, {3}});
  const ChunkReuse::Rules rules{.kept = 24};
  EXPECT_EQ(sources(reuse, rules, 0), "1 decoded 0, later 2; 2 decoded 0, later 1; ");
  EXPECT_EQ(sources(reuse, rules, 1), "1 kept 0, later 1; ");
  EXPECT_EQ(sources(reuse, rules, 2), "2 kept 0, later 0; 3 decoded 2, later 2; ");
  EXPECT_EQ(sources(reuse, rules, 3), "1 kept 0, later 0; 3 kept 2, later 1; ");
  EXPECT_EQ(sources(reuse, rules, 5), "");
  EXPECT_EQ(sources(reuse, {}, 3), "1 decoded 3, later 0; 3 decoded 3, later 0; ");
}

TEST(ChunkReuse, TheSourcesOfABatchThatJoins) {
  const ChunkReuse reuse = reuse_of({{1}, {1}, {1}, {1}});
  const ChunkReuse::Rules rules{.kept = 12, .joined = 2};
  EXPECT_EQ(sources(reuse, rules, 0), "1 decoded 0, later 2; ");
  EXPECT_EQ(sources(reuse, rules, 1), "1 joined 0, later 2; ");
  EXPECT_EQ(sources(reuse, rules, 2), "1 kept 0, later 0; ");
  EXPECT_EQ(sources(reuse, rules, 3), "1 joined 0, later 0; ");
}

TEST(ChunkReuse, DecodedBytesAreThoseOfTheSources) {
  const Batches batches = {{1, 2}, {3}, {2, 1}, {1}, {3, 2}, {1}};
  for (const double kept : {0, 12, 24, 36})
    for (const std::int64_t joined : {1, 2, 3}) {
      const ChunkReuse::Rules rules{.kept = kept, .joined = joined};
      double decoded = 0;
      for (int batch = 0; batch < 6; ++batch)
        for (const ChunkReuse::Supply& source : reuse_of(batches).supplies(rules, batch))
          if (source.kind == ChunkReuse::Supply::Kind::decoded) decoded += 10;
      EXPECT_EQ(decoded, reuse_of(batches).decoded(rules).likely) << kept << " " << joined;
    }
}

TEST(ChunkReuse, SharesOfTheMemory) {
  EXPECT_EQ(kept_memory(1000), 500u);
  EXPECT_EQ(joined_memory(1000, true), 750u);
  EXPECT_EQ(joined_memory(1000, false), 500u);
  EXPECT_EQ(joined_batches(750, 100), 7);
  EXPECT_EQ(joined_batches(750, 1000), 1);
  EXPECT_EQ(joined_batches(750, 0), kMaxJoined);
  constexpr std::uint64_t kMB = 1 << 20;
  EXPECT_EQ(prefetch_memory(1000, 10, true), 500u);
  EXPECT_EQ(prefetch_memory(4096 * kMB, 10, false), 2048 * kMB);
  EXPECT_EQ(prefetch_memory(4096 * kMB, 10, true), 256 * kMB);
  EXPECT_EQ(prefetch_memory(4096 * kMB, 300 * kMB, true), 600 * kMB);
}

}  // namespace chunk_reuse_test
}  // namespace batchfs
