#include "tools/planning/box_union.h"

#include <random>
#include <set>

#include <gtest/gtest.h>

namespace batchfs {
namespace box_union_test {

TEST(BoxUnion, NothingAndOne) {
  EXPECT_EQ(covered_elements({}), 0);
  EXPECT_EQ(covered_elements({{{3, 4}, {2, 5}}}), 10);
  EXPECT_EQ(covered_elements({{{3, 4}, {2, 0}}}), 0);
  EXPECT_EQ(covered_elements({{{}, {}}}), 1) << "a scalar";
}

TEST(BoxUnion, EqualsCountingOneByOne) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const std::size_t rank = 1 + random() % 3;
    std::vector<Box> boxes(1 + random() % 8);
    std::set<std::vector<std::int64_t>> elements;
    std::vector<std::set<std::int64_t>> positions(rank);
    for (Box& box : boxes) {
      box = {Dims(rank), Dims(rank)};
      for (std::size_t d = 0; d < rank; ++d) {
        box.start[d] = random() % 7;
        box.shape[d] = random() % 5;
        for (std::int64_t i = 0; i < box.shape[d]; ++i) positions[d].insert(box.start[d] + i);
      }
      std::vector<std::int64_t> at(3);
      const auto length = [&](std::size_t d) { return d < rank ? box.shape[d] : 1; };
      const auto start = [&](std::size_t d) { return d < rank ? box.start[d] : 0; };
      for (at[0] = 0; at[0] < length(0); ++at[0])
        for (at[1] = 0; at[1] < length(1); ++at[1])
          for (at[2] = 0; at[2] < length(2); ++at[2])
            elements.insert({start(0) + at[0], start(1) + at[1], start(2) + at[2]});
    }
    ASSERT_EQ(covered_elements(boxes), static_cast<std::int64_t>(elements.size())) << round;
    for (std::size_t d = 0; d < rank; ++d)
      ASSERT_EQ(covered_length(boxes, d), static_cast<std::int64_t>(positions[d].size())) << round;
  }
}

TEST(BoxUnion, WhatWouldTakeTooLongIsNotCounted) {
  // Borders of 3000 windows along each of two dimensions: nine million cells.
  std::vector<Box> boxes;
  for (std::int64_t i = 0; i < 3000; ++i) boxes.push_back({{7 * i, 5 * i}, {100, 100}});
  EXPECT_EQ(covered_elements(boxes), std::nullopt);
  EXPECT_EQ(covered_length(boxes, 0), 7 * 2999 + 100);
  // Large boxes are fast, too.
  EXPECT_EQ(covered_elements({{{0, 0}, {1 << 30, 4}}, {{1 << 29, 2}, {1 << 30, 4}}}),
            (INT64_C(1) << 32) + (INT64_C(1) << 32) - (INT64_C(1) << 30));
}

}  // namespace box_union_test
}  // namespace batchfs
