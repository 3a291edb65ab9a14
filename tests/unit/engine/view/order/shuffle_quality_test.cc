#include "engine/view/order/shuffle_quality.h"

#include <cmath>

#include "tests/unit/engine/view/assembled.h"

namespace batchfs {
namespace shuffle_quality_test {

/// A variable of `times` by `points`, in chunks of `chunk` times.
std::shared_ptr<const View> view(std::int64_t times, std::int64_t points, std::int64_t chunk,
                                 const std::string& rest) {
  MemoryData data;  // without values: plans need none
  data.declare("a", "<i4", {"time", "x"}, {times, points}, {chunk, points}, Json::object(),
               nullptr);
  const auto dataset = data.dataset();
  return parse_view(dataset, R"({"variables": ["a"], )" + rest + "}");
}

double mean_distance(const std::vector<std::int64_t>& values) {
  double sum = 0, pairs = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    for (std::size_t j = 0; j < i; ++j, ++pairs)
      sum += static_cast<double>(std::abs(values[i] - values[j]));
  return sum / pairs;
}

/// By its definition, without a shuffle.
double by_all_pairs(const View& view) {
  const std::int64_t joined = view.batch_size() == 1 ? 2 : 1;
  double least = 1;
  for (std::size_t w = 0; w < view.window_starts(0, 0)[0].size(); ++w) {
    std::vector<std::int64_t> all;
    double sum = 0, count = 0;
    for (std::int64_t s = 0; s < view.batches() / joined; ++s) {
      std::vector<std::int64_t> here;
      for (std::int64_t b = 0; b < joined; ++b)
        for (const Dims& starts : view.window_starts(0, s * joined + b)) here.push_back(starts[w]);
      all.insert(all.end(), here.begin(), here.end());
      if (here.size() < 2) continue;
      sum += mean_distance(here);
      ++count;
    }
    least = std::min(least, sum / count / mean_distance(all));
  }
  return least;
}

TEST(ShuffleQuality, IsWhatItSays) {
  for (int batch : {1, 2, 7, 60})
    for (const char* window : {R"({"time": 1})", R"({"time": {"size": 3, "stride": 2}, "x": 2})",
                               R"({"x": 1, "time": 2})"}) {
      const auto plain =
          view(60, 6, 5,
               R"("window": )" + std::string(window) + R"(, "batch": )" + std::to_string(batch));
      EXPECT_NEAR(*shuffle_quality(*plain), by_all_pairs(*plain), 1e-12) << window << " " << batch;
    }
}

TEST(ShuffleQuality, OfShuffles) {
  const std::string head = R"("window": {"time": 1}, "batch": 16, "order": {"shuffle": )";
  EXPECT_NEAR(*shuffle_quality(*view(4000, 1, 10, head + R"("global"})")), 1, 0.01);
  // Samples of a batch are in one of k groups, and 1 in k of their pairs in the same.
  for (int k : {1, 2, 4, 10})
    EXPECT_NEAR(*shuffle_quality(
                    *view(4000, 1, 16, head + R"("block", "buffer": )" + std::to_string(k) + "}")),
                1 - 1.0 / k, 0.03);
  EXPECT_LT(*shuffle_quality(*view(4000, 1, 10, head + R"("none"})")), 0.005);
}

TEST(ShuffleQuality, TheDimensionThatIsMixedWorstCounts) {
  // Each chunk holds every x and 10 times: along x all is mixed, along time nothing.
  const auto block = view(1000, 20, 10, R"("window": {"x": 1, "time": 1}, "batch": 20,
                                          "order": {"shuffle": "block", "buffer": 1})");
  EXPECT_LT(*shuffle_quality(*block), 0.02);
}

TEST(ShuffleQuality, OfAStepIsThatOfTheBatchesOfAllRanks) {
  // A run of one group: batches of neighbours, of as many groups as there are lanes.
  const auto lanes = view(4000, 1, 20, R"("window": {"time": 1}, "batch": 10,
      "order": {"shuffle": "block", "buffer": 1, "lanes": 8})");
  EXPECT_LT(*shuffle_quality(*lanes), 0.02);
  EXPECT_NEAR(*shuffle_quality(*lanes, 8), 1 - 1.0 / 8, 0.04);
  // Pairs of batches of one are those that a lane has in succession.
  const auto single = view(4000, 1, 20, R"("window": {"time": 1},
      "order": {"shuffle": "block", "buffer": 1, "lanes": 8})");
  EXPECT_LT(*shuffle_quality(*single), 0.02);
  EXPECT_FALSE(shuffle_quality(*lanes, 500));  // an epoch has 400 batches
}

TEST(ShuffleQuality, OfVeryManySamplesIsEstimated) {
  const auto large = view(2000, 2000, 2000, R"("window": {"time": 1, "x": 1}, "batch": 100,
                                              "order": {"shuffle": "global"})");
  EXPECT_EQ(large->samples(), 4000000);
  EXPECT_NEAR(*shuffle_quality(*large), 1, 0.03);
}

TEST(ShuffleQuality, WhatHasNoneIsNothing) {
  EXPECT_EQ(shuffle_quality(*view(1, 1, 1, R"("window": {"time": 1})")), std::nullopt);
  EXPECT_EQ(shuffle_quality(*view(8, 1, 1, R"("xbatcher": {"input_dims": {"time": 2}})")),
            std::nullopt);
}

}  // namespace shuffle_quality_test
}  // namespace batchfs
