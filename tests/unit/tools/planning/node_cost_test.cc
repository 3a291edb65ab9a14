#include "tools/planning/node_cost.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/view/assembled.h"
#include "tools/planning/advice.h"

namespace batchfs {
namespace node_cost_test {

/// v(time, x) of float32, `times` by 8, in chunks of 10 steps, not compressed, 320 bytes each.
std::shared_ptr<const View> view(const std::string& json, std::int64_t times = 2000) {
  MemoryData data;
  data.declare("v", "<f4", {"time", "x"}, {times, 8}, {10, 8});
  for (std::int64_t i = 0; i < times / 10 && i < 10000; ++i)
    data.store->objects[fmt::format("v/{}.0", i)] = std::string(320, '\0');
  return parse_view(data.dataset(), json);
}

std::shared_ptr<const View> pairs(const std::string& order, std::int64_t times = 2000) {
  return view(
      R"({"window": {"time": {"size": 2, "stride": 1}}, "batch": 5, "order": )" + order + "}",
      times);
}

TEST(Cluster, RanksAreSpreadInOrder) {
  const Cluster cluster{8, 3};
  EXPECT_EQ(cluster.first_rank(0), 0);
  EXPECT_EQ(cluster.first_rank(1), 3);
  EXPECT_EQ(cluster.first_rank(2), 6);
  EXPECT_EQ(cluster.first_rank(3), 8);
}

TEST(Cluster, ANodeReadsTheLanesOfItsRanks) {
  EXPECT_EQ((Cluster{8, 2}.lanes_of_node(8)), 4);
  EXPECT_EQ((Cluster{8, 2}.lanes_of_node(32)), 16);
  EXPECT_EQ((Cluster{1, 1}.lanes_of_node(32)), 32);
  EXPECT_EQ((Cluster{3, 3}.lanes_of_node(8)), 8);  // each rank reads from every lane
  EXPECT_EQ((Cluster{8, 8}.lanes_of_node(4)), 1);
}

TEST(NodeCost, IsCountedByNode) {
  const auto v = view(R"({"window": {"time": 10}, "batch": 5, "order": {"lanes": 4}})", 400);
  const auto cost = estimate_nodes(*v, estimate_cost(*v), {4, 2});
  ASSERT_TRUE(cost);
  EXPECT_TRUE(cost->counted);
  EXPECT_EQ(cost->by_node, (std::vector<double>{20 * 320, 20 * 320}));
  EXPECT_EQ(cost->all, 40 * 320);
  EXPECT_EQ(cost->copies, 1);
}

TEST(NodeCost, OneNodeFetchesEachChunkOnce) {
  for (const char* shuffle : {"none", "global", "block"}) {
    const auto v = pairs(fmt::format(R"({{"shuffle": "{}", "lanes": 3}})", shuffle));
    const ViewCost cost = estimate_cost(*v);
    EXPECT_EQ(estimate_nodes(*v, cost, {6, 1})->copies, 1) << shuffle;
    EXPECT_EQ(estimated_copies(*v, cost, {6, 1}), 1) << shuffle;
  }
}

TEST(NodeCost, TheFormulaIsNearWhatIsCounted) {
  for (const char* order :
       {R"({"shuffle": "global"})", R"({"shuffle": "none"})", R"({"shuffle": "none", "lanes": 16})",
        R"({"shuffle": "block", "buffer": 10})",
        R"({"shuffle": "block", "buffer": 2, "lanes": 16})",
        R"({"shuffle": "block", "buffer": 1, "lanes": 16, "span": {"time": 8}})",
        R"({"shuffle": "block", "buffer": 1, "lanes": 16, "span": {"time": 4}, "home": true})"})
    for (const Cluster cluster : {Cluster{16, 2}, Cluster{16, 4}, Cluster{8, 4}, Cluster{12, 4}}) {
      const auto v = pairs(order, 20000);
      const ViewCost cost = estimate_cost(*v);
      const auto counted = estimate_nodes(*v, cost, cluster);
      ASSERT_TRUE(counted->counted);
      EXPECT_NEAR(estimated_copies(*v, cost, cluster), counted->copies, 0.12 * counted->copies)
          << order << " " << cluster.world << " " << cluster.nodes;
    }
}

TEST(NodeCost, OfAVeryLargeViewIsEstimated) {
  const auto v =
      pairs(R"({"shuffle": "block", "buffer": 1, "lanes": 64, "span": {"time": 32}})", 1 << 30);
  const auto cost = estimate_nodes(*v, estimate_cost(*v), {64, 8});
  ASSERT_TRUE(cost);
  EXPECT_FALSE(cost->counted);
  EXPECT_TRUE(cost->by_node.empty());
  EXPECT_NEAR(cost->copies, 1 + (1 - 1.0 / 8) / 32, 0.01);
}

TEST(NodeCost, WithHomesTheNextEpochFetchesLittle) {
  const Cluster cluster{4, 4};
  const auto rest = [&](const char* home) {
    const auto v = pairs(
        fmt::format(R"({{"shuffle": "block", "buffer": 4, "lanes": 4, "home": {}}})", home), 4000);
    const auto cost = estimate_nodes(*v, estimate_cost(*v), cluster);
    return *cost->next_epoch / cost->all;
  };
  EXPECT_GT(rest("false"), 0.3);
  EXPECT_LT(rest("true"), 0.05);
}

TEST(NodeCost, LanesThatRanksDoNotDivideAreDearerAndPlanSaysSo) {
  const auto v = pairs(R"({"shuffle": "block", "buffer": 2, "lanes": 8})", 20000);
  const ViewCost cost = estimate_cost(*v);
  EXPECT_GT(estimate_nodes(*v, cost, {6, 3})->copies, estimate_nodes(*v, cost, {8, 4})->copies);
  EXPECT_TRUE(cluster_advice(*v, {6, 3}));
  EXPECT_FALSE(cluster_advice(*v, {8, 4}));
  EXPECT_FALSE(cluster_advice(*v, {6, 1}));
}

}  // namespace node_cost_test
}  // namespace batchfs
