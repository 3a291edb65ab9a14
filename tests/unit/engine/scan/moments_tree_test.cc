#include "engine/scan/moments_tree.h"

#include <random>

#include <gtest/gtest.h>

#include "engine/base/error.h"

namespace batchfs {
namespace moments_tree_test {

/// Leaves of two entries, of which some leaves have one.
MomentsNode leaf(std::int64_t number) {
  std::mt19937_64 random(static_cast<std::uint64_t>(number));
  std::normal_distribution<double> normal(280, 15);
  MomentsNode node{number, 0, {}, {}};
  for (const std::int64_t entry : {0, 1}) {
    if ((number + entry) % 5 == 0) continue;
    const double mean = normal(random);
    node.entries.push_back(entry);
    node.moments.emplace_back();
    node.moments.back().add(
        Moments{100 + number, number % 3, mean, 100 * mean, mean - 1, mean + 1});
  }
  return node;
}

MomentsTree run(std::int64_t first, std::int64_t end) {
  MomentsTree tree;
  for (std::int64_t number = first; number < end; ++number) tree.add(leaf(number));
  return tree;
}

TEST(MomentsTree, RunsThatAreSummedApartComeToTheSameBits) {
  for (const std::int64_t leaves : {1, 2, 13, 64, 100}) {
    const std::vector<Moments> whole = run(0, leaves).total(2);
    for (const std::int64_t length : {1, 3, 8, 33}) {
      MomentsTree together;
      for (std::int64_t first = 0; first < leaves; first += length) {
        MomentsTree part = run(first, std::min(first + length, leaves));
        for (MomentsNode& node : part.take()) together.add(std::move(node));
      }
      EXPECT_TRUE(together.is_whole(leaves));
      const std::vector<Moments> total = together.total(2);
      for (std::size_t entry = 0; entry < 2; ++entry) {
        EXPECT_EQ(total[entry].count, whole[entry].count);
        EXPECT_EQ(total[entry].mean, whole[entry].mean);
        EXPECT_EQ(total[entry].m2, whole[entry].m2);
      }
    }
  }
}

TEST(MomentsTree, TheTotalIsThatOfAllLeaves) {
  MergedMoments wanted[2];
  for (std::int64_t number = 0; number < 100; ++number) {
    const MomentsNode node = leaf(number);
    for (std::size_t i = 0; i < node.entries.size(); ++i)
      wanted[node.entries[i]].add(node.moments[i]);
  }
  const std::vector<Moments> total = run(0, 100).total(3);
  for (std::size_t entry = 0; entry < 2; ++entry) {
    const Moments m = wanted[entry].moments();
    EXPECT_EQ(total[entry].count, m.count);
    EXPECT_EQ(total[entry].nan, m.nan);
    EXPECT_EQ(total[entry].min, m.min);
    EXPECT_EQ(total[entry].max, m.max);
    EXPECT_DOUBLE_EQ(total[entry].mean, m.mean);
    EXPECT_NEAR(total[entry].m2 / m.m2, 1, 1e-13);
  }
  EXPECT_EQ(total[2].count, 0);
}

TEST(MomentsTree, HoldsFewNodes) {
  EXPECT_EQ(run(0, 64).nodes().size(), 1u);
  EXPECT_EQ(run(0, 64).nodes()[0].level, 6);
  EXPECT_EQ(run(1, 64).nodes().size(), 6u);  // 1, 2-3, 4-7, ...
  EXPECT_TRUE(MomentsTree().is_whole(0));
  EXPECT_FALSE(run(1, 64).is_whole(64));
  EXPECT_FALSE(run(0, 63).is_whole(64));
}

TEST(MomentsTree, NodesOfNoTreeAreRefused) {
  MomentsTree tree = run(0, 3);
  EXPECT_THROW(tree.add(leaf(2)), Error);
  EXPECT_THROW(tree.add(leaf(4)), Error);
  EXPECT_THROW(MomentsTree().add({1, 1, {}, {}}), Error);
  EXPECT_THROW(MomentsTree().add({0, -1, {}, {}}), Error);
  EXPECT_THROW(MomentsTree().add({0, MomentsTree::kMaxLevel + 1, {}, {}}), Error);
  EXPECT_THROW(MomentsTree().add({-1, 0, {}, {}}), Error);
}

}  // namespace moments_tree_test
}  // namespace batchfs
