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
  const Json json = statistics_json(found, *view);
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

TEST(Statistics, OfNothingButNanIsNull) {
  const auto dataset = MemoryData()
                           .add("v", "<f4", {"time"}, {3}, std::vector<float>{NAN, NAN, NAN})
                           .add("flag", "|b1", {"time"}, {3}, std::vector<std::uint8_t>{0, 1, 0})
                           .dataset();
  const auto view = View::parse(dataset, R"({"window": {"time": 1}})", "v", "test");
  const auto found = compute(*dataset, *view);
  ASSERT_EQ(found.size(), 1u);  // no booleans
  const Json json = statistics_json(found, *view);
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
