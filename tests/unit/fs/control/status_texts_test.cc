#include "fs/control/status_texts.h"

#include <map>
#include <regex>
#include <sstream>

#include <gmock/gmock.h>

#include <unistd.h>

#include "tests/unit/fs/mounted.h"

namespace batchfs {
namespace status_texts_test {

using testing::HasSubstr;

MemoryData weather() {
  MemoryData data;
  data.add("t", "<i2", {"time", "x"}, {4, 3}, counting<std::int16_t>(12))
      .index<std::int32_t>("time", "<i4", {0, 6, 12, 18}, {{"units", "hours since 2000-01-01"}});
  return data;
}

/// A mount that has just begun.
MountState quiet() {
  MountState state;
  state.pid = 42;
  state.uptime = 1'500'000'000;
  state.counters = {{"bytes_fetched", "Bytes read", 7}, {"reader_wait_nanoseconds", "", 250}};
  return state;
}

TEST(StatusTexts, AreFunctionsOfTheState) {
  const Json json = Json::parse(status_json(quiet()));
  EXPECT_EQ(json["pid"], 42);
  EXPECT_EQ(json["uptime_seconds"], 1.5);
  EXPECT_EQ(json["bytes_fetched"], 7);
  EXPECT_EQ(json["reader_wait_seconds"], 2.5e-7);
  EXPECT_EQ(json["streams"], Json::array());
  const std::string text = metrics_text(quiet());
  EXPECT_THAT(text, HasSubstr("# HELP batchfs_fetched_bytes_total Bytes read\n"));
  EXPECT_THAT(text, HasSubstr("\nbatchfs_fetched_bytes_total 7\n"));
  EXPECT_THAT(text, HasSubstr("\nbatchfs_uptime_seconds 1.5\n"));
}

TEST(StatusTexts, WhatAMountLacksIsLeftOut) {
  const Json json = Json::parse(status_json(quiet()));
  for (const char* key : {"cgroup", "handoff", "snapshot", "store"})
    EXPECT_FALSE(json.contains(key)) << key;
  EXPECT_EQ(metrics_text(quiet()).find("cgroup"), std::string::npos);
  MountState state = quiet();
  state.cgroup = CgroupMemory{.used = 5, .shared = 3};
  state.handoff = {{"readers", 1}};
  state.snapshot = {{"id", "abc"}};
  state.generations = 3;
  state.store = {{"requests", 9}, {"requests_in_flight", 2}};
  const Json full = Json::parse(status_json(state));
  EXPECT_EQ(full["cgroup"], Json::parse(R"({"memory_used": 5, "memory_shared": 3})"));
  EXPECT_EQ(full["handoff"]["readers"], 1);
  EXPECT_EQ(full["snapshot"]["id"], "abc");
  EXPECT_EQ(full["generations"], 3);
  EXPECT_THAT(metrics_text(state), HasSubstr("\nbatchfs_generations 3\n"));
  EXPECT_EQ(full["store"]["requests"], 9);
  const std::string text = metrics_text(state);
  EXPECT_THAT(text, HasSubstr("\nbatchfs_store_requests_total 9\n"));
  EXPECT_THAT(text, HasSubstr("\nbatchfs_store_requests_in_flight 2\n"));
  EXPECT_THAT(text, HasSubstr("\nbatchfs_cgroup_memory_shared_bytes 3\n"));
}

TEST(StatusTexts, AStreamHasThePrefetchOfItsPrefetcher) {
  MountState state = quiet();
  state.streams = {{.view = "train", .format = "npy", .rank = 1, .world = 2}};
  state.engine.streams = {{"train", "npy", 0, 2, 0, 0, 5}, {"train", "npy", 1, 2, 0, 0, 8}};
  EXPECT_EQ(Json::parse(status_json(state))["streams"][0]["prefetch"], 8);
}

TEST(StatusTexts, StatusHasWhatProgramsRelyOn) {
  Mounted mounted(weather(),
                  {R"({"name": "train", "variables": ["t"], "window": {"time": 1}, "batch": 3})"});
  mounted.files().set_passthrough(true);
  mounted.read("views/train/epoch-0000/batch-000000.npy");
  const Json status = Json::parse(mounted.read(".batchfs/status.json"));
  EXPECT_EQ(status["pid"], ::getpid());
  EXPECT_EQ(status["passthrough"], true);
  for (const char* key : {"bytes_fetched", "bytes_decoded", "bytes_delivered", "chunks_decoded",
                          "batches_assembled", "memory_budget", "memory_used", "errors"})
    EXPECT_TRUE(status.at(key).is_number_unsigned() || status.at(key).is_number_integer()) << key;
  EXPECT_TRUE(status["reader_wait_seconds"].is_number());
  EXPECT_GE(status["batches_assembled"].get<int>(), 1);
  EXPECT_EQ(status["memory_budget"], 256 << 20);
}

TEST(StatusTexts, MetricsAreOfPrometheusFormat) {
  Mounted mounted(weather(),
                  {R"({"name": "train", "variables": ["t"], "window": {"time": 1}, "batch": 1})"});
  mounted.read("views/train/rank-1-of-2/epoch-0000/batch-000000.npy");
  mounted.read("views/train/epoch-0000/batch-000003.npy");
  const std::string text = mounted.read(".batchfs/metrics");
  const std::regex line_of_it(
      R"(# HELP batchfs_[a-z_]+ .+|# TYPE batchfs_[a-z_]+ (counter|gauge|histogram)|batchfs_[a-z_]+(\{.*\})? [0-9.e+-]+)");
  std::istringstream lines(text);
  int n = 0;
  for (std::string line; std::getline(lines, line); ++n)
    EXPECT_TRUE(std::regex_match(line, line_of_it)) << line;
  EXPECT_GT(n, 60);
  for (const char* part :
       {"\nbatchfs_memory_budget_bytes 268435456\n", "batchfs_fetched_bytes_total ",
        "\nbatchfs_batches_opened_total 2\n", "\nbatchfs_get_batch_seconds_count 2\n",
        "\nbatchfs_stream_batches_total{view=\"train\",format=\"npy\",rank=\"1\",world=\"2\"} 1\n"})
    EXPECT_THAT(text, HasSubstr(part));
}

TEST(StatusTexts, StatusTellsOfEachReader) {
  Mounted mounted(weather(),
                  {R"({"name": "train", "variables": ["t"], "window": {"time": 1}, "batch": 1})"});
  for (const char* batch : {"0", "1"})
    mounted.read(std::string("views/train/rank-1-of-2/epoch-0003/batch-00000") + batch + ".npy");
  const Json status = Json::parse(mounted.read(".batchfs/status.json"));
  EXPECT_GE(status["uptime_seconds"].get<double>(), 0);
  EXPECT_EQ(status["threads"], 2);
  EXPECT_EQ(status["wait_seconds"]["count"], 2);
  ASSERT_EQ(status["streams"].size(), 1u);
  const Json& reader = status["streams"][0];
  EXPECT_EQ(reader["view"], "train");
  EXPECT_EQ(reader["format"], "npy");
  EXPECT_EQ(reader["rank"], 1);
  EXPECT_EQ(reader["world"], 2);
  EXPECT_EQ(reader["epoch"], 3);
  EXPECT_EQ(reader["batch"], 1);
  EXPECT_EQ(reader["batches"], 2);
  EXPECT_EQ(reader["failures"], 0);
  EXPECT_GT(reader["bytes"].get<int>(), 0);
  EXPECT_GT(reader["batches_per_second"].get<double>(), 0);
  EXPECT_GE(reader["wait_seconds"]["max"].get<double>(),
            reader["wait_seconds"]["p50"].get<double>());
}

TEST(StatusTexts, TheTraceHasWhatWasDoneForEachBatch) {
  Mounted mounted(
      weather(),
      {R"({"name": "train", "variables": ["t"], "window": {"time": 1}, "batch": 4, "epochs": 1})"});
  mounted.read("views/train/epoch-0000/batch-000000.npy");
  std::map<std::string, Json> events;
  for (const Json& event : Json::parse(mounted.read(".batchfs/trace.json")))
    if (event["ph"] == "X") events[event["name"].get<std::string>()] = event;
  for (const char* name :
       {"decode", "assemble", "wait"}) {  // the store is in memory: nothing is fetched
    ASSERT_TRUE(events.contains(name)) << name;
    const Json& args = events[name]["args"];
    EXPECT_EQ(args["view"], "train") << name;
    EXPECT_EQ(args["epoch"], 0) << name;
    EXPECT_EQ(args["batch"], 0) << name;
  }
  EXPECT_EQ(events["decode"]["args"]["chunk"], "t/0.0");
  EXPECT_EQ(events["decode"]["args"]["bytes"], 24);
  EXPECT_GE(events["wait"]["dur"].get<double>(), events["decode"]["dur"].get<double>());
}

}  // namespace status_texts_test
}  // namespace batchfs
