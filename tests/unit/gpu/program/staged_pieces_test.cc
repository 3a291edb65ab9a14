#include "gpu/program/staged_pieces.h"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace batchfs::gpu {
namespace staged_pieces_test {

constexpr std::uint64_t kMiB = 1 << 20;

StagedChunk chunk(std::uint64_t size, bool is_stored = true) {
  StagedChunk staged;
  staged.size = size;
  if (is_stored) staged.stored.emplace();
  return staged;
}

std::vector<std::vector<std::uint64_t>> sizes(const std::vector<StagedChunk>& chunks) {
  std::vector<std::vector<std::uint64_t>> result;
  for (const auto& task : staged_pieces(chunks)) {
    result.emplace_back();
    for (const StagedPiece& piece : task) result.back().push_back(piece.size);
  }
  return result;
}

using Sizes = std::vector<std::vector<std::uint64_t>>;

TEST(StagedPieces, SmallChunksAreReadTogether) {
  EXPECT_EQ(sizes({chunk(kMiB), chunk(2 * kMiB), chunk(kMiB)}), (Sizes{{kMiB, 2 * kMiB, kMiB}}));
  EXPECT_EQ(sizes({chunk(4 * kMiB), chunk(3 * kMiB)}), (Sizes{{4 * kMiB}, {3 * kMiB}}));
}

TEST(StagedPieces, LargeChunksAreDividedWithoutASmallRest) {
  EXPECT_EQ(sizes({chunk(9 * kMiB)}), (Sizes{{4 * kMiB}, {5 * kMiB}}));
}

TEST(StagedPieces, FetchedChunksAreNotDivided) {
  EXPECT_EQ(sizes({chunk(9 * kMiB, false)}), (Sizes{{9 * kMiB}}));
}

TEST(StagedPieces, APartWithoutChunksHasOneTask) { EXPECT_EQ(sizes({}), (Sizes{{}})); }

TEST(StagedPieces, PiecesCoverEachChunkInOrder) {
  const std::vector<StagedChunk> chunks = {chunk(9 * kMiB + 17), chunk(5), chunk(30 * kMiB)};
  std::vector<std::uint64_t> covered(chunks.size());
  for (const auto& task : staged_pieces(chunks))
    for (const StagedPiece& piece : task) {
      EXPECT_EQ(piece.offset, covered[piece.chunk]);
      covered[piece.chunk] += piece.size;
    }
  for (std::size_t i = 0; i < chunks.size(); ++i) EXPECT_EQ(covered[i], chunks[i].size);
}

}  // namespace staged_pieces_test
}  // namespace batchfs::gpu
