#include "gpu/program/chunk_arena.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace batchfs::gpu {
namespace chunk_arena_test {

using testing::ElementsAre;
using Key = ChunkArena::Key;

/// Inserts a chunk of `size` bytes, decoded by program `number`. Returns its offset.
std::uint64_t put(ChunkArena& arena, const Key& key, std::uint64_t size, std::uint64_t number,
                  ProgramNumbers* waits = nullptr) {
  ProgramNumbers after;
  const auto offset = arena.allocate(size, after);
  EXPECT_TRUE(offset.has_value());
  auto chunk = std::make_shared<DecodedChunk>();
  chunk->offset = *offset;
  chunk->size = chunk->bytes = size;
  chunk->decoded_by = number;
  arena.insert(key, chunk);
  if (waits != nullptr) *waits = after;
  return *offset;
}

TEST(ChunkArena, TheChunkWithTheFarthestUseGoesFirst) {
  ChunkArena arena(3 * 1024);
  for (std::int64_t c = 0; c < 3; ++c) put(arena, {0, c}, 1024, 1);
  arena.add_use({0, 0}, 7);
  arena.add_use({0, 1}, 9);
  arena.add_use({0, 2}, 8);
  put(arena, {0, 3}, 1024, 2);
  EXPECT_EQ(arena.find({0, 1}), nullptr);
  EXPECT_NE(arena.find({0, 0}), nullptr);
  EXPECT_NE(arena.find({0, 2}), nullptr);
  // One without a known use goes before all others, whatever came later.
  put(arena, {0, 4}, 1024, 3);
  EXPECT_EQ(arena.find({0, 3}), nullptr);
  // A use that is over counts no more.
  arena.add_use({0, 4}, 100);
  arena.remove_use({0, 0}, 7);
  put(arena, {0, 5}, 1024, 4);
  EXPECT_EQ(arena.find({0, 0}), nullptr);
  EXPECT_EQ(arena.evictions(), 3u);
}

TEST(ChunkArena, RoomWaitsForThoseWhoUsedIt) {
  ChunkArena arena(1024);
  put(arena, {0, 0}, 1024, 3);
  arena.add_reader(*arena.find({0, 0}), 5);
  arena.add_reader(*arena.find({0, 0}), 4);
  ProgramNumbers waits;
  put(arena, {0, 1}, 512, 6, &waits);
  EXPECT_THAT(waits, ElementsAre(3, 4, 5));
  arena.ended(4);
  put(arena, {0, 2}, 512, 7, &waits);  // the other half of the same room
  EXPECT_THAT(waits, ElementsAre(5));
}

TEST(ChunkArena, PinnedChunksStay) {
  ChunkArena arena(2048);
  put(arena, {0, 0}, 1024, 1);
  put(arena, {0, 1}, 1024, 1);
  arena.find({0, 0})->pinned = arena.find({0, 1})->pinned = true;
  ProgramNumbers after;
  EXPECT_FALSE(arena.allocate(256, after).has_value());
  arena.find({0, 1})->pinned = false;
  EXPECT_TRUE(arena.allocate(256, after).has_value());
  EXPECT_NE(arena.find({0, 0}), nullptr);
}

TEST(ChunkArena, RoomsNeverOverlapAndNoneIsLost) {
  std::mt19937 random(1);
  ChunkArena arena(1 << 20);
  std::map<std::int64_t, std::shared_ptr<DecodedChunk>> placed;
  for (int i = 0; i < 20000; ++i) {
    const auto c = static_cast<std::int64_t>(random() % 300);
    if (random() % 4 == 0) {
      arena.drop({0, c});
    } else if (arena.find({0, c}) == nullptr) {
      put(arena, {0, c}, 1 + random() % 20000, 1);
    }
    if (i % 50 != 0) continue;
    std::map<std::uint64_t, std::uint64_t> rooms;
    for (std::int64_t k = 0; k < 300; ++k)
      if (const auto chunk = arena.find({0, k})) rooms[chunk->offset] = chunk->size;
    std::uint64_t end = 0;
    for (const auto& [offset, size] : rooms) {
      ASSERT_GE(offset, end);
      end = offset + size;
    }
    ASSERT_LE(end, std::uint64_t{1} << 20);
  }
  for (std::int64_t k = 0; k < 300; ++k) arena.drop({0, k});
  ProgramNumbers after;
  EXPECT_EQ(arena.allocate(1 << 20, after), 0u);
}

}  // namespace chunk_arena_test
}  // namespace batchfs::gpu
