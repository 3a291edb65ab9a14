#include "engine/view/order/order.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace batchfs {
namespace order_test {

using List = std::vector<std::int64_t>;

List all(const Permutation& permutation, std::int64_t count) {
  List result;
  for (std::int64_t i = 0; i < count; ++i) result.push_back(permutation(i));
  return result;
}

List all(const Order& order, std::int64_t samples, std::int64_t epoch, const ChunkGroups& groups) {
  List result;
  for (std::int64_t i = 0; i < samples; ++i)
    result.push_back(order.sample(i, samples, epoch, groups));
  return result;
}

List sorted(List list) {
  std::sort(list.begin(), list.end());
  return list;
}

List counting(std::int64_t count) {
  List list(static_cast<std::size_t>(count));
  std::iota(list.begin(), list.end(), 0);
  return list;
}

// [permute(i, size, seed, epoch, stream) for i in ...], the Python of batchfs-view(5). These
// numbers are a promise to existing trainings: they never change.
TEST(Permutation, IsTheDocumentedOne) {
  EXPECT_EQ(all(Permutation(10, 0, 0), 10), (List{5, 2, 1, 3, 7, 0, 9, 6, 8, 4}));
  EXPECT_EQ(all(Permutation(10, 7, 3), 10), (List{2, 6, 1, 5, 8, 7, 0, 4, 3, 9}));
  EXPECT_EQ(all(Permutation(1'000'000'000, 11, 2), 5),
            (List{181737233, 644225329, 401867473, 731355117, 609996083}));
  EXPECT_EQ(all(Permutation((INT64_C(1) << 60) - 5, INT64_MAX, 999999999), 3),
            (List{550389884056514109, 657091716505933060, 107890169471850023}));
  EXPECT_EQ(all(Permutation(17, 1, 0, 5), 17),
            (List{1, 4, 12, 8, 14, 7, 9, 2, 13, 5, 11, 0, 10, 3, 16, 6, 15}));
}

TEST(Permutation, IsOneForEverySize) {
  for (std::int64_t size = 1; size <= 300; ++size)
    EXPECT_EQ(sorted(all(Permutation(size, 3, 4), size)), counting(size)) << size;
}

TEST(Permutation, DiffersBySeedEpochAndStream) {
  std::set<List> orders;
  for (std::uint64_t seed : {0, 1, 2})
    for (std::uint64_t epoch : {0, 1, 2})
      for (std::uint64_t stream : {0, 1, 2})
        orders.insert(all(Permutation(100, seed, epoch, stream), 100));
  EXPECT_EQ(orders.size(), 27u);
}

TEST(Permutation, MixesWell) {
  // No position keeps its neighbour more often than chance: about one in `size`.
  const List order = all(Permutation(10000, 1, 0), 10000);
  int neighbours = 0, fixed = 0;
  for (std::size_t i = 1; i < order.size(); ++i) {
    neighbours += std::abs(order[i] - order[i - 1]) == 1;
    fixed += order[i] == static_cast<std::int64_t>(i);
  }
  EXPECT_LT(neighbours, 20);  // expected: 2
  EXPECT_LT(fixed, 12);       // expected: 1
}

TEST(Order, WithoutShuffleIsTheNumbering) { EXPECT_EQ(all(Order{}, 5, 3, {}), counting(5)); }

TEST(Order, BlockIsTheDocumentedOne) {
  const Order order{Order::Shuffle::block, 4, 2};
  // [block(i, 60, 4, 1, 2, [(20, 3, 4), (3, 0, 3)]) for i in range(60)]
  EXPECT_EQ(all(order, 60, 1, {{{20, 3, 4}, {3, 0, 3}}}),
            (List{12, 41, 17, 19, 43, 44, 34, 13, 33, 20, 11, 42, 9,  39, 36, 18, 10, 37, 40, 35,
                  15, 16, 14, 38, 27, 54, 30, 23, 28, 46, 50, 31, 52, 25, 55, 51, 47, 29, 21, 56,
                  45, 49, 26, 22, 32, 48, 53, 24, 57, 2,  58, 4,  3,  7,  8,  5,  0,  6,  1,  59}));
}

TEST(Order, BlockIsAPermutationOfEveryShape) {
  for (std::int64_t positions : {1, 2, 7, 20})
    for (std::int64_t inner : {1, 3})
      for (std::int64_t group : {1, 3, 20, 50})
        for (std::int64_t lead : {0, 1, 2})
          for (std::int64_t buffer : {INT64_C(1), INT64_C(2), INT64_C(1) << 20}) {
            if (lead > positions) continue;
            const Order order{Order::Shuffle::block, 9, buffer};
            const std::int64_t samples = positions * inner;
            EXPECT_EQ(
                sorted(all(order, samples, 2, {{{positions, lead, group}, {inner, 0, inner}}})),
                counting(samples));
            EXPECT_EQ(sorted(all(order, samples, 2, {{{inner, 0, 2}, {positions, lead, group}}})),
                      counting(samples));
            EXPECT_EQ(sorted(all(order, 7 * samples, 2,
                                 {{{7, 2, 2}, {positions, lead, group}, {inner, 1, 1}}})),
                      counting(7 * samples));
          }
}

TEST(Order, BlockMixesOnlyInsideItsWindow) {
  const Order order{Order::Shuffle::block, 1, 1};
  const List list = all(order, 40, 0, {{{8, 0, 2}, {5, 0, 5}}});  // 4 groups of 10 samples
  for (std::size_t g = 0; g < 4; ++g) {
    std::set<std::int64_t> groups;
    for (std::size_t i = 0; i < 10; ++i) groups.insert(list[10 * g + i] / 10);
    EXPECT_EQ(groups.size(), 1u);
  }
}

TEST(Order, BlockGroupsAlongEveryAxis) {
  // 6 x 8 samples in groups of 2 x 4: each group is one tile, and is left before the next begins.
  const Order order{Order::Shuffle::block, 1, 1};
  const List list = all(order, 48, 0, {{{6, 0, 2}, {8, 0, 4}}});
  EXPECT_EQ(sorted(list), counting(48));
  std::set<std::int64_t> tiles;
  for (std::size_t g = 0; g < 6; ++g) {
    std::set<std::int64_t> here;
    for (std::size_t i = 0; i < 8; ++i)
      here.insert(list[8 * g + i] / 16 * 2 + list[8 * g + i] % 8 / 4);
    EXPECT_EQ(here.size(), 1u);
    tiles.merge(here);
  }
  EXPECT_EQ(tiles.size(), 6u);
}

TEST(Order, BlockOfManySamplesDoesNotOverflow) {
  // 2^60 samples in groups of 2^44, mixed over 2^20 groups: buffer * group does not fit 64 bits.
  const Order order{Order::Shuffle::block, 1, INT64_C(1) << 20};
  const ChunkGroups groups{
      {{INT64_C(1) << 40, 0, INT64_C(1) << 24}, {INT64_C(1) << 20, 0, INT64_C(1) << 20}}};
  std::set<std::int64_t> seen;
  for (std::int64_t i = 0; i < 1000; ++i) {
    const std::int64_t s = order.sample(i * (INT64_C(1) << 50), INT64_C(1) << 60, 0, groups);
    EXPECT_GE(s, 0);
    EXPECT_LT(s, INT64_C(1) << 60);
    seen.insert(s);
  }
  EXPECT_EQ(seen.size(), 1000u);
}

TEST(ChunkGroups, OfSeveralSizes) {
  // 7 positions in groups of 2, 1 and 4, times 5 positions in pairs after a lead: every sample
  // once, group by group.
  const ChunkGroups groups{{{7, 0, 1, {0, 2, 3, 7}}, {5, 1, 2}}};
  EXPECT_TRUE(groups.is_uneven());
  EXPECT_EQ(groups.count(), 6);
  EXPECT_EQ(groups.in_groups(), 28);
  List places;
  for (std::int64_t g = 0; g <= 6; ++g) places.push_back(groups.begin(g));
  EXPECT_EQ(places, (List{0, 4, 8, 10, 12, 20, 28}));
  List samples;
  for (std::int64_t place = 0; place < 35; ++place) samples.push_back(groups.sample(place));
  EXPECT_EQ(List(samples.begin(), samples.begin() + 12),
            (List{1, 2, 6, 7, 3, 4, 8, 9, 11, 12, 13, 14}));
  EXPECT_EQ(List(samples.begin() + 28, samples.end()), (List{0, 5, 10, 15, 20, 25, 30}));
  EXPECT_EQ(sorted(samples), counting(35));
}

}  // namespace order_test
}  // namespace batchfs
