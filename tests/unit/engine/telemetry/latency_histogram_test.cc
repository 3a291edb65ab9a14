#include "engine/telemetry/latency_histogram.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace latency_histogram_test {
namespace waits_test {

TEST(LatencyHistogram, Edges) {
  EXPECT_EQ(LatencyHistogram::edges()[0], 1'000u);
  EXPECT_EQ(LatencyHistogram::edges()[1], 1'500u);
  EXPECT_EQ(LatencyHistogram::edges()[6], 10'000u);
  EXPECT_EQ(LatencyHistogram::edges()[LatencyHistogram::kEdges - 1], 70'000'000'000u);
}

TEST(LatencyHistogram, OfNone) {
  const LatencyHistogram waits;
  EXPECT_EQ(waits.count(), 0u);
  EXPECT_EQ(waits.mean(), 0);
  EXPECT_EQ(waits.quantile(0.99), 0);
  EXPECT_EQ(waits.at_most(1'000'000), 0u);
}

TEST(LatencyHistogram, CountsSumsAndBuckets) {
  LatencyHistogram waits;
  for (const std::uint64_t ns : {0ull, 1'000ull, 1'001ull, 3'000'000ull, 500'000'000'000ull})
    waits.add(ns);
  EXPECT_EQ(waits.count(), 5u);
  EXPECT_EQ(waits.sum(), 500'003'002'001u);
  EXPECT_EQ(waits.max(), 500'000'000'000u);
  EXPECT_EQ(waits.at_most(1'000), 2u);  // an edge belongs to its bucket
  EXPECT_EQ(waits.at_most(1'500), 3u);
  EXPECT_EQ(waits.at_most(3'000'000), 4u);
  EXPECT_EQ(waits.at_most(70'000'000'000), 4u);
}

TEST(LatencyHistogram, QuantilesLieInTheirBuckets) {
  LatencyHistogram waits;
  for (int i = 0; i < 98; ++i) waits.add(12'000);
  waits.add(6'000'000);
  waits.add(400'000'000'000);
  EXPECT_GT(waits.quantile(0.5), 10'000);
  EXPECT_LE(waits.quantile(0.5), 15'000);
  EXPECT_GT(waits.quantile(0.99), 5'000'000);
  EXPECT_LE(waits.quantile(0.99), 7'000'000);
  EXPECT_EQ(waits.quantile(1), 400'000'000'000);
}

TEST(LatencyHistogram, AQuantileIsNeverMoreThanTheLongest) {
  LatencyHistogram waits;
  waits.add(11'000);
  EXPECT_LE(waits.quantile(0.99), 11'000);
}

}  // namespace waits_test
}  // namespace latency_histogram_test
}  // namespace batchfs
