#include "engine/scan/statistics.h"

#include <cmath>

#include <gtest/gtest.h>

#include "engine/base/log.h"
#include "tests/unit/engine/dataset/memory_data.h"
#include "tests/unit/engine/pipeline/fake_store.h"

namespace batchfs {
namespace statistics_test {

std::vector<VariableStatistics> compute(const Dataset& dataset, const View& view,
                                        const StatisticsOptions& options = {}, int threads = 2) {
  Log log;
  Engine engine({.threads = threads, .memory = 1 << 20, .prefetch = false}, log);
  return compute_statistics(engine, dataset, view, options);
}

// FakeData(4, 3, 5): "v" (time 12, x 5) in 4 chunks of 3 times; element i of chunk c is 1000 c + i.

TEST(Statistics, OverChunks) {
  const FakeData data(4, 3, 5);
  const auto view = data.view(R"({"window": {"time": 1}})");
  const auto found = compute(*data.dataset, *view);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].name, "v");
  EXPECT_TRUE(found[0].dims.empty());
  // numpy: v = (1000 * numpy.arange(4)[:, None] + numpy.arange(15)).reshape(12, 5).astype("f8")
  ASSERT_EQ(found[0].values.size(), 1u);
  const Moments& m = found[0].values[0];
  EXPECT_EQ(m.count, 60);
  EXPECT_NEAR(m.mean, 1507, 1e-12);
  EXPECT_NEAR(m.std(), 1118.0423367058454, 1e-9);
  EXPECT_EQ(m.min, 0);
  EXPECT_EQ(m.max, 3014);
  // numpy.diff(v, axis=0)
  EXPECT_EQ(found[0].tendency_dim, "time");
  EXPECT_EQ(found[0].tendencies[0].count, 55);
  EXPECT_NEAR(found[0].tendencies[0].mean, 273.6363636363636, 1e-10);
  EXPECT_NEAR(found[0].tendencies[0].std(), 438.6813448438964, 1e-9);
  EXPECT_EQ(data.store->reads, 4);
}

TEST(Statistics, KeptDimensionsFollowTheSelection) {
  const FakeData data(2, 3, 5);
  const auto view = data.view(R"({"window": {"time": 1}, "select": {"x": ["#4", "#1"]}})");
  const auto found =
      compute(*data.dataset, *view, {.per = std::vector<std::string>{"x"}, .tendency = ""});
  EXPECT_EQ(found[0].dims, (std::vector<std::string>{"x"}));
  ASSERT_EQ(found[0].values.size(), 2u);
  EXPECT_EQ(found[0].values[0].min, 4);
  EXPECT_EQ(found[0].values[1].min, 1);
  EXPECT_TRUE(found[0].tendencies.empty());
  const Json json = statistics_json(found, Json::object());
  EXPECT_EQ(json["v"]["dims"], Json({"x"}));
  EXPECT_EQ(json["v"]["count"], Json({6, 6}));
  EXPECT_EQ(json["v"]["min"], Json({4.0, 1.0}));
}

TEST(Statistics, ThreadsChangeNoBit) {
  const FakeData data(40, 3, 5);
  data.store->asynchronous = false;
  const auto view = data.view(R"({"window": {"time": 1}})");
  const auto one = compute(*data.dataset, *view, {}, 1);
  for (int threads : {2, 5, 8}) {
    const auto many = compute(*data.dataset, *view, {}, threads);
    EXPECT_EQ(one[0].values[0].mean, many[0].values[0].mean);
    EXPECT_EQ(one[0].values[0].m2, many[0].values[0].m2);
    EXPECT_EQ(one[0].tendencies[0].mean, many[0].tendencies[0].mean);
    EXPECT_EQ(one[0].tendencies[0].m2, many[0].tendencies[0].m2);
  }
}

/// Statistics of shares that are read one after the other, each by its own engine, and merged from
/// their serialized sums.
std::vector<VariableStatistics> in_tasks(const Dataset& dataset, const View& view, int tasks) {
  std::optional<StatisticsMerge> merge;
  for (int task = 0; task < tasks; ++task) {
    Log log;
    Engine engine({.threads = 1 + task % 3, .memory = 1 << 20, .prefetch = false}, log);
    StatisticsScan scan(dataset, view, {});
    const std::string bytes = statistics_part(scan.form(), scan.read(engine, task, tasks));
    StatisticsPart part = parse_statistics_part(bytes, "part");
    if (!merge) merge.emplace(part.form);
    merge->add(std::move(part.sums));
  }
  return merge->result();
}

void expect_same_bits(const std::vector<Moments>& a, const std::vector<Moments>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].count, b[i].count);
    EXPECT_EQ(a[i].nan, b[i].nan);
    EXPECT_EQ(a[i].mean, b[i].mean);
    EXPECT_EQ(a[i].m2, b[i].m2);
    EXPECT_EQ(a[i].min, b[i].min);
    EXPECT_EQ(a[i].max, b[i].max);
  }
}

TEST(Statistics, TasksChangeNoBit) {
  const FakeData data(40, 3, 5);
  const auto view = data.view(R"({"window": {"time": 1}})");
  const auto whole = compute(*data.dataset, *view);
  for (int tasks : {1, 2, 7, 39, 64}) {
    data.store->reads = 0;
    const auto shared = in_tasks(*data.dataset, *view, tasks);
    ASSERT_EQ(shared.size(), 1u);
    expect_same_bits(shared[0].values, whole[0].values);
    expect_same_bits(shared[0].tendencies, whole[0].tendencies);
    // The chunk before a share is read for the tendency across the border.
    EXPECT_LE(data.store->reads, 40 + std::min(tasks, 40) - 1);
  }
}

TEST(Statistics, SharesAreContiguousAndOfAboutOneSize) {
  const FakeData data(40, 3, 5);
  const auto view = data.view(R"({"window": {"time": 1}})");
  Log log;
  Engine engine({.threads = 1, .memory = 1 << 20, .prefetch = false}, log);
  StatisticsScan scan(*data.dataset, *view, {});
  std::int64_t before = 0;
  for (int task = 0; task < 3; ++task) {
    std::int64_t pieces = 0;
    const StatisticsSums sums =
        scan.read(engine, task, 3, [&](std::int64_t, std::int64_t all) { pieces = all; });
    ASSERT_FALSE(sums[0].values.empty());
    EXPECT_EQ(sums[0].values.front().first, before);
    before = sums[0].values.back().end();
    EXPECT_NEAR(static_cast<double>(pieces), 40 / 3.0, 1);
  }
  EXPECT_EQ(before, 40);
}

TEST(Statistics, AShareTooManyIsEmpty) {
  const FakeData data(2, 3, 5);
  const auto view = data.view(R"({"window": {"time": 1}})");
  Log log;
  Engine engine({.threads = 1, .memory = 1 << 20, .prefetch = false}, log);
  StatisticsScan scan(*data.dataset, *view, {});
  EXPECT_TRUE(scan.read(engine, 0, 5)[0].values.empty());
  EXPECT_EQ(data.store->reads, 0);
}

TEST(Statistics, OfNothingButNanIsNull) {
  const auto dataset = MemoryData()
                           .add("v", "<f4", {"time"}, {3}, std::vector<float>{NAN, NAN, NAN})
                           .add("flag", "|b1", {"time"}, {3}, std::vector<std::uint8_t>{0, 1, 0})
                           .dataset();
  const auto view = View::parse(dataset, R"({"window": {"time": 1}})", "v", "test");
  const auto found = compute(*dataset, *view);
  ASSERT_EQ(found.size(), 1u);  // no booleans
  const Json json = statistics_json(found, Json::object());
  EXPECT_EQ(json["v"]["nan"], 3);
  for (const char* key : {"mean", "std", "min", "max"})
    EXPECT_TRUE(json["v"][key].is_null()) << key;
}

TEST(Statistics, WhichDimensionsAreLevelsAndTime) {
  const auto dataset =
      MemoryData()
          .index<std::int64_t>("valid", "<i8", {0, 24}, {{"units", "hours since 2000-01-01"}})
          .index<float>("zeta", "<f4", {1, 2}, {{"positive", "down"}})
          .index<float>("eta", "<f4", {1, 2}, {{"axis", "Z"}})
          .index<float>("lat", "<f4", {1, 2}, {{"axis", "Y"}})
          .add("v", "<f4", {"valid", "zeta", "eta", "lat", "level"}, {2, 2, 2, 2, 1},
               std::vector<float>(16))
          .dataset();
  EXPECT_EQ(vertical_dims(*dataset), (std::vector<std::string>{"zeta", "eta", "level"}));
  EXPECT_EQ(time_dim(*dataset), "valid");
}

TEST(Statistics, UnknownDimensionsAreRefused) {
  const FakeData data(1, 3, 5);
  const auto view = data.view(R"({"window": {"time": 1}})");
  EXPECT_THROW(compute(*data.dataset, *view, {.per = std::vector<std::string>{"y"}}), Error);
  EXPECT_THROW(compute(*data.dataset, *view, {.tendency = "y"}), Error);
}

}  // namespace statistics_test
}  // namespace batchfs
