#include "engine/store/http/latency_quantile.h"

#include <gtest/gtest.h>

namespace batchfs {

namespace latency_quantile_test {

TEST(LatencyQuantile, IsUnknownAtFirst) {
  LatencyQuantile latency;
  for (int i = 0; i < 31; ++i) latency.add(5);
  EXPECT_EQ(latency.p99(), std::nullopt);
  latency.add(5);
  EXPECT_EQ(latency.p99(), 5);
}

TEST(LatencyQuantile, LeavesOutTheSlowest) {
  LatencyQuantile latency;
  for (int i = 0; i < 256; ++i) latency.add(i % 128 == 7 ? 1'000'000 : i % 100);
  EXPECT_EQ(latency.p99(), 99);
}

TEST(LatencyQuantile, FollowsTheTimes) {
  LatencyQuantile latency;
  for (int i = 0; i < 256; ++i) latency.add(10);
  for (int i = 0; i < 256; ++i) latency.add(50);
  EXPECT_EQ(latency.p99(), 50);
}

}  // namespace latency_quantile_test

}  // namespace batchfs
