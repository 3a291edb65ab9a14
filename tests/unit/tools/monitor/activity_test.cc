#include "tools/monitor/activity.h"

#include <gtest/gtest.h>

#include "engine/base/json_text.h"

namespace batchfs {
namespace activity_test {

Json status(double uptime, int batches, double waited, int pid = 7) {
  return {{"pid", pid},
          {"uptime_seconds", uptime},
          {"passthrough", true},
          {"threads", 4},
          {"bytes_fetched", 1000 * batches},
          {"chunks_decoded", 30},
          {"chunk_cache_hits", 10},
          {"errors", 2},
          {"memory_used", 5},
          {"memory_budget", 10},
          {"store",
           {{"requests", 10 * batches},
            {"requests_in_flight", 3},
            {"request_limit", 8},
            {"retries", 1}}},
          {"streams",
           Json::array({{{"view", "train"},
                         {"format", "npy"},
                         {"rank", 0},
                         {"world", 2},
                         {"epoch", 1},
                         {"batch", batches},
                         {"epoch_batches", 100},
                         {"window", 4},
                         {"batches", batches},
                         {"bytes", 100 * batches},
                         {"wait_seconds", {{"sum", waited}, {"p50", 0.25}, {"p99", 0.5}}}}})}};
}

TEST(Activity, RatesAreBetweenTheTwoLooks) {
  const Activity a = activity(status(10, 20, 1), status(12, 30, 1.5));
  EXPECT_DOUBLE_EQ(a.seconds, 2);
  EXPECT_DOUBLE_EQ(a.uptime, 12);
  EXPECT_DOUBLE_EQ(a.fetched, 5000);
  EXPECT_DOUBLE_EQ(a.requests, 50);
  EXPECT_TRUE(a.remote);
  EXPECT_FALSE(a.disk_cache);
  EXPECT_EQ(a.in_flight, 3u);
  EXPECT_EQ(a.limit, 8u);
  EXPECT_EQ(a.errors, 2u);
  ASSERT_EQ(a.readers.size(), 1u);
  EXPECT_DOUBLE_EQ(a.readers[0].batches, 5);
  EXPECT_DOUBLE_EQ(a.readers[0].bytes, 500);
  EXPECT_DOUBLE_EQ(a.readers[0].wait_share, 0.25);
  EXPECT_DOUBLE_EQ(a.readers[0].median, 0.25);
  EXPECT_EQ(a.readers[0].batch, 30);
}

TEST(Activity, CountsWhatSharedCachesDo) {
  EXPECT_FALSE(activity(status(10, 20, 1), status(12, 30, 1.5)).shared_caches);
  Json earlier = status(10, 20, 1), later = status(12, 30, 1.5);
  earlier["store"].update({{"via_requests", 10}, {"via_bytes", 1000}, {"via_fallbacks", 1}});
  later["store"].update(
      {{"via_requests", 30}, {"via_bytes", 5000}, {"via_fallbacks", 4}, {"via_failures", 2}});
  Activity a = activity(earlier, later);
  EXPECT_TRUE(a.shared_caches);
  EXPECT_DOUBLE_EQ(a.via_requests, 10);
  EXPECT_DOUBLE_EQ(a.via_received, 2000);
  EXPECT_EQ(a.via_fallbacks, 4u);
  EXPECT_EQ(a.via_failures, 2u);
  EXPECT_FALSE(a.via_hits);  // the caches do not report them
  EXPECT_FALSE(activity_json(a)["store"]["via"].contains("hit_share"));
  later["store"].update({{"via_hits", 15}, {"via_misses", 5}});
  a = activity(earlier, later);
  EXPECT_DOUBLE_EQ(a.via_hits.value(), 0.75);
  EXPECT_EQ(activity_json(a)["store"]["via"]["hit_share"], 0.75);
}

TEST(Activity, SinceTheStartWithoutAnEarlierLook) {
  const Activity a = activity(nullptr, status(10, 20, 1));
  EXPECT_DOUBLE_EQ(a.fetched, 2000);
  EXPECT_DOUBLE_EQ(a.cache_hits, 0.25);
  EXPECT_DOUBLE_EQ(a.readers[0].wait_share, 0.1);
}

TEST(Activity, ADaemonThatWasStartedAnewCountsFromItsStart) {
  const Activity a = activity(status(100, 5000, 9), status(2, 10, 1, 8));
  EXPECT_DOUBLE_EQ(a.fetched, 5000);
  EXPECT_DOUBLE_EQ(a.seconds, 2);
}

TEST(Activity, StatsOfAnotherVersionOrNone) {
  EXPECT_EQ(activity(nullptr, Json::object()).readers.size(), 0u);
  const Activity a = activity(
      Json::parse(R"({"streams": 3, "pid": "x"})"),
      Json::parse(
          R"({"streams": [1, null, {"view": 4, "batches": -1}], "store": [], "handoff": {"gpus": [2]},
                                              "memory_used": -5, "errors": 1e300, "uptime_seconds": null})"));
  EXPECT_EQ(a.memory_used, 0u);
  EXPECT_EQ(a.errors, 0u);
  EXPECT_EQ(a.readers.size(), 1u);
  EXPECT_EQ(a.readers[0].batches, 0);
}

TEST(Activity, AsJson) {
  const Json json = activity_json(activity(status(10, 20, 1), status(12, 30, 1.5)));
  EXPECT_EQ(json["readers"][0]["view"], "train");
  EXPECT_EQ(json["readers"][0]["batches_per_second"], 5);
  EXPECT_EQ(json["store"]["in_flight"], 3);
  EXPECT_EQ(json["errors"], 2);
  EXPECT_FALSE(activity_json(activity(nullptr, Json::object())).contains("store"));
}

}  // namespace activity_test
}  // namespace batchfs
