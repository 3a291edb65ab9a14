#include "engine/base/dims.h"

#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace batchfs {
namespace dims_test {

TEST(ElementCount, MultipliesAndRefusesOverflow) {
  EXPECT_EQ(element_count({}), 1);
  EXPECT_EQ(element_count({2, 3, 4}), 24);
  EXPECT_EQ(element_count({INT64_MAX, 0}), 0);
  EXPECT_THROW(element_count({INT64_MAX, 2}), Error);
}

TEST(CStrides, AreRowMajorBytes) {
  EXPECT_EQ(c_strides({2, 3, 4}, 8), (Dims{96, 32, 8}));
  EXPECT_THROW(c_strides({4, INT64_MAX / 4}, 8), Error);
}

TEST(Boxes, ContainAndBound) {
  const Box a{{0, 2}, {4, 2}}, b{{1, 2}, {2, 1}}, c{{3, 0}, {4, 1}};
  EXPECT_TRUE(contains(a, b));
  EXPECT_FALSE(contains(b, a));
  EXPECT_EQ(bounding_box(a, c), (Box{{0, 0}, {7, 4}}));
}

TEST(CopyStrided, TransposesAndTakesSubBoxes) {
  std::vector<std::int16_t> source(2 * 3 * 4), result(24, -1);
  std::iota(source.begin(), source.end(), std::int16_t{0});
  // (2, 3, 4) in C order to its axes-reversed copy.
  copy_strided({2, 3, 4}, 2, reinterpret_cast<std::byte*>(source.data()), {24, 8, 2},
               reinterpret_cast<std::byte*>(result.data()), {2, 4, 12});
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 4; ++k) EXPECT_EQ(result[k * 6 + j * 2 + i], source[i * 12 + j * 4 + k]);
}

TEST(ForEachRun, JoinsContiguousDimensions) {
  int runs = 0;
  std::int64_t elements = 0;
  auto count = [&](std::int64_t n, std::int64_t, std::int64_t, std::int64_t, std::int64_t) {
    ++runs;
    elements += n;
  };
  for_each_run({5, 3, 4}, 4, {48, 16, 4}, 4, {48, 16, 4}, count);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(elements, 60);
  runs = 0;
  for_each_run({5, 3, 4}, 4, {480, 16, 4}, 4, {48, 16, 4}, count);
  EXPECT_EQ(runs, 5);
  runs = 0;
  for_each_run({5, 0, 4}, 4, {0, 16, 4}, 4, {0, 16, 4}, count);
  EXPECT_EQ(runs, 0);
  for_each_run({}, 4, {}, 4, {}, count);
  EXPECT_EQ(runs, 1);
}

TEST(RunOffsets, GoThroughTheRunsOfABoxInOrder) {
  const Dims counts{4, 2, 3}, src{2, 10, 100}, dst{2, 8, -16};
  RunOffsets offsets;
  std::vector<std::pair<std::int64_t, std::int64_t>> all;
  do all.emplace_back(offsets.src, offsets.dst);
  while (offsets.next(counts, src, dst));
  EXPECT_EQ(all, (std::vector<std::pair<std::int64_t, std::int64_t>>{
                     {0, 0}, {10, 8}, {100, -16}, {110, -8}, {200, -32}, {210, -24}}));
}

TEST(RunPrefetch, IsForShortRuns) {
  const std::byte memory[64] = {};
  EXPECT_EQ(RunPrefetch(memory, 192).distance(), 16);
  EXPECT_EQ(RunPrefetch(memory, 1).distance(), 64);
  EXPECT_EQ(RunPrefetch(memory, 4096).distance(), 0);
  EXPECT_EQ(RunPrefetch(nullptr, 192).distance(), 0);
}

TEST(Dims, RefusesToGrowPastItsCapacity) {
  Dims dims;
  for (int i = 0; i < kMaxDims; ++i) dims.push_back(i);
  EXPECT_THROW(dims.push_back(1), Error);
}

TEST(Dims, RepeatsABoxAlongFurtherDimensions) {
  // Two elements, at 0 and 4 of (2, 3, 4), repeated along the first and the last dimension.
  std::vector<std::int16_t> values(24, -1);
  values[0] = 7;
  values[4] = 8;
  const Repeat repeat{{2, 3}, {24, 2}};
  repeat_strided({2}, 2, reinterpret_cast<std::byte*>(values.data()), {8}, repeat);
  EXPECT_EQ(values, (std::vector<std::int16_t>{7, 7, 7, -1, 8, 8, 8, -1, -1, -1, -1, -1,  //
                                               7, 7, 7, -1, 8, 8, 8, -1, -1, -1, -1, -1}));
  repeat_strided({1}, 2, reinterpret_cast<std::byte*>(values.data() + 5), {2}, {{}, {}});
  EXPECT_EQ(values[6], 8) << "nowhere else";
}

TEST(Dims, FillsAStridedBox) {
  std::vector<std::int16_t> values(12);
  const std::int16_t element = -3;
  // Rows 1 and 2, columns 1 and 3 of (3, 4).
  fill_strided({2, 2}, 2, reinterpret_cast<const std::byte*>(&element),
               reinterpret_cast<std::byte*>(values.data() + 5), {8, 4});
  EXPECT_EQ(values, (std::vector<std::int16_t>{0, 0, 0, 0, 0, -3, 0, -3, 0, -3, 0, -3}));
  fill_strided({0, 2}, 2, reinterpret_cast<const std::byte*>(&element),
               reinterpret_cast<std::byte*>(values.data()), {8, 4});
  EXPECT_EQ(values[0], 0);
}

}  // namespace dims_test
}  // namespace batchfs
