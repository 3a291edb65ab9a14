#include "engine/zarr/chunk_grid.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace chunk_grid_test {

TEST(ChunkGrid, CountsChunksWithShortOnesAtTheEdge) {
  const ChunkGrid grid({5, 7, 4}, {2, 3, 4});
  EXPECT_EQ(grid.counts(), (Dims{3, 3, 1}));
  EXPECT_EQ(grid.chunk_count(), 9);
  EXPECT_EQ(grid.box({0, 0, 0}), (Box{{0, 0, 0}, {2, 3, 4}}));
  EXPECT_EQ(grid.box({2, 2, 0}), (Box{{4, 6, 0}, {1, 1, 4}}));
}

TEST(ChunkGrid, NumbersChunksRowMajor) {
  const ChunkGrid grid({5, 7, 4}, {2, 3, 2});
  for (std::int64_t number = 0; number < grid.chunk_count(); ++number)
    EXPECT_EQ(grid.linear(grid.chunk(number)), number);
  EXPECT_EQ(grid.chunk(0), (Dims{0, 0, 0}));
  EXPECT_EQ(grid.chunk(1), (Dims{0, 0, 1}));
  EXPECT_EQ(grid.chunk(17), (Dims{2, 2, 1}));
}

TEST(ChunkGrid, ChunksMayBeLargerThanTheArray) {
  const ChunkGrid grid({3}, {INT64_MAX});
  EXPECT_EQ(grid.counts(), (Dims{1}));
  EXPECT_EQ(grid.box({0}), (Box{{0}, {3}}));
}

TEST(ChunkGrid, WithoutDimensionsAndWithoutElements) {
  const ChunkGrid scalar({}, {});
  EXPECT_EQ(scalar.chunk_count(), 1);
  EXPECT_EQ(scalar.linear({}), 0);
  EXPECT_EQ(scalar.chunk(0), Dims{});
  const ChunkGrid empty({0, 3}, {1, 1});
  EXPECT_EQ(empty.chunk_count(), 0);
  EXPECT_EQ(empty.counts(), (Dims{0, 3}));
}

TEST(ChunkGrid, HoldsTheLargestArrays) {
  const ChunkGrid grid({INT64_MAX}, {2});
  EXPECT_EQ(grid.chunk_count(), INT64_C(1) << 62);
  EXPECT_EQ(grid.box({(INT64_C(1) << 62) - 1}), (Box{{INT64_MAX - 1}, {1}}));
}

TEST(ChunkGrid, RefusesWhatCannotBe) {
  EXPECT_THROW(ChunkGrid({1}, {1, 1}), Error);
  EXPECT_THROW(ChunkGrid({-1}, {1}), Error);
  EXPECT_THROW(ChunkGrid({1}, {0}), Error);
  EXPECT_THROW(ChunkGrid({1}, {-5}), Error);
  EXPECT_THROW(ChunkGrid({INT64_MAX}, {1}), Error);
  EXPECT_THROW(ChunkGrid({INT64_C(1) << 40, INT64_C(1) << 40}, {1, 1}), Error);
}

}  // namespace chunk_grid_test
}  // namespace batchfs
