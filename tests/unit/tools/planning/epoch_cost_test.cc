#include "tools/planning/epoch_cost.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/view/assembled.h"

namespace batchfs {
namespace epoch_cost_test {

constexpr double kChunk = 10 * 64 * 4, kAll = 10 * kChunk;

/// v(time, x) of float32, 100 by 64, in chunks of 10 steps, by batches of 4 steps.
std::shared_ptr<const View> view(const std::string& order, int epochs = 1) {
  MemoryData data;
  data.declare("v", "<f4", {"time", "x"}, {100, 64}, {10, 64});
  return parse_view(data.dataset(),
                    fmt::format(R"({{"window": {{"time": 1}}, "batch": 4, "epochs": {},
                                     "order": {{"shuffle": "{}"}}}})",
                                epochs, order));
}

EpochCost cost_of(const View& view, double budget) {
  return estimate_epoch(view, estimate_cost(view), budget);
}

TEST(EpochCost, AnEpochIsFollowed) {
  const auto reuse = follow_epoch(*view("none"));
  ASSERT_TRUE(reuse);
  EXPECT_EQ(reuse->uses(), 30u) << "three batches use each chunk";
  // Each batch reads its own part of uncompressed local chunks.
  EXPECT_EQ(reuse->decoded({}).least, kAll);
  EXPECT_EQ(reuse->decoded({}).likely, kAll);
  EXPECT_EQ(reuse->decoded({.joined = 3}).most, kAll);
}

TEST(EpochCost, UncompressedLocalChunksDoNotStay) {
  for (const char* order : {"none", "global", "block"})
    EXPECT_FALSE(cost_of(*view(order, 2), 1e9).all_stay) << order;
}

TEST(EpochCost, TheEstimateLiesBetweenTheBounds) {
  for (const char* order : {"none", "global", "block"})
    for (const double budget : {0.0, 5e3, 2e4, 5e4, 1e5, 1e6}) {
      const auto of = view(order);
      const EpochCost cost = cost_of(*of, budget);
      ASSERT_TRUE(cost.bounds) << order << budget;
      EXPECT_LE(cost.bounds->least, cost.decoded) << order << budget;
      EXPECT_LE(cost.decoded, cost.bounds->most) << order << budget;
      EXPECT_LE(cost.bounds->most, follow_epoch(*of)->decoded({}).most) << order << budget;
    }
}

TEST(EpochCost, LanesAreEstimatedByAFormula) {
  const auto of = view("global");
  ViewCost cost = estimate_cost(*of);
  cost.lanes = 2;
  const EpochCost epoch = estimate_epoch(*of, cost, 2e4);
  EXPECT_FALSE(epoch.bounds);
  EXPECT_FALSE(epoch.is_exact());
  EXPECT_EQ(epoch.decoded, epoch_decoded(*of, cost, epoch.kept));
}

TEST(EpochCost, UncompressedLocalChunksAreReadInParts) {
  MemoryData data;
  data.declare("v", "<f4", {"time", "x"}, {100, 64}, {10, 64});
  for (const auto& [stride, factor] : {std::pair(1, 1), std::pair(10, 1)}) {
    const auto of = parse_view(
        data.dataset(),
        fmt::format(R"({{"window": {{"time": {{"size": 1, "stride": {}}}}}, "batch": 5}})",
                    stride));
    const ViewCost cost = estimate_cost(*of);
    EXPECT_DOUBLE_EQ(amplification(*of, cost, estimate_epoch(*of, cost, 1e9)), factor);
  }
}

}  // namespace epoch_cost_test
}  // namespace batchfs
