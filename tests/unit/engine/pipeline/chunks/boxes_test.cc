#include "engine/pipeline/chunks/boxes.h"

#include <set>

#include <gtest/gtest.h>

namespace batchfs {
namespace boxes_test {

TEST(BoxesOfRun, CoverTheRunInOrderWithFewBoxes) {
  const Dims shape{3, 4, 5};
  for (std::int64_t first = 0; first < 60; ++first)
    for (std::int64_t count = 0; first + count <= 60; ++count) {
      std::int64_t next = first;
      const std::vector<Box> boxes = boxes_of_run(shape, first, count);
      EXPECT_LE(boxes.size(), 5u);
      for (const Box& box : boxes) {
        EXPECT_EQ((box.start[0] * 4 + box.start[1]) * 5 + box.start[2], next);
        next += box.elements();
      }
      EXPECT_EQ(next, first + count);
    }
  EXPECT_EQ(boxes_of_run({}, 0, 1).size(), 1u);
}

TEST(Intersection, HoldsWhatLiesInBoth) {
  EXPECT_EQ(intersection({{2, 1}, {4, 5}}, {{3, 0}, {9, 3}}), (Box{{3, 1}, {3, 2}}));
  EXPECT_TRUE(intersection({{2, 1}, {4, 5}}, {{6, 1}, {1, 5}}).empty());
  EXPECT_TRUE(intersection({{6, 1}, {1, 5}}, {{2, 1}, {3, 5}}).empty());
}

TEST(Without, CutsOffAnEndOrAll) {
  const Box box{{2, 1}, {4, 5}};
  EXPECT_EQ(without(box, {{0, 0}, {3, 9}}), (Box{{3, 1}, {3, 5}}));
  EXPECT_EQ(without(box, {{5, 1}, {1, 5}}), (Box{{2, 1}, {3, 5}}));
  EXPECT_EQ(without(box, {{2, 4}, {4, 2}}), (Box{{2, 1}, {4, 3}}));
  EXPECT_TRUE(without(box, box)->empty());
  EXPECT_FALSE(without(box, {{3, 1}, {1, 5}})) << "the middle";
  EXPECT_FALSE(without(box, {{2, 1}, {2, 2}})) << "a corner";
  EXPECT_FALSE(without(box, {{6, 1}, {1, 5}})) << "nothing";
}

TEST(ForEachChunk, CutsABoxAlongTheGrid) {
  const ChunkGrid grid({10, 7}, {4, 3});
  const Box box{{2, 1}, {7, 6}};
  std::set<std::pair<std::int64_t, std::int64_t>> seen;
  for_each_chunk(grid, box, [&](std::int64_t chunk, const Box& source, const Dims& offset) {
    const Dims at = grid.chunk(chunk);
    for (std::int64_t i = 0; i < source.shape[0]; ++i)
      for (std::int64_t j = 0; j < source.shape[1]; ++j) {
        const std::int64_t y = at[0] * 4 + source.start[0] + i, x = at[1] * 3 + source.start[1] + j;
        EXPECT_EQ(y, box.start[0] + offset[0] + i);
        EXPECT_EQ(x, box.start[1] + offset[1] + j);
        EXPECT_TRUE(seen.insert({y, x}).second);
      }
  });
  EXPECT_EQ(seen.size(), 42u);
}

}  // namespace boxes_test
}  // namespace batchfs
