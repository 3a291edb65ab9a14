#include "tools/show/variable_sample.h"

#include <cmath>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include "engine/base/log.h"
#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace variable_sample_test {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

std::vector<DimFacts> facts_of(const Variable& variable) {
  std::vector<DimFacts> facts;
  for (const std::string& dim : variable.dims) facts.push_back({dim});
  return facts;
}

SamplePlan plan(const MemoryData& data, const std::string& name, const SampleLimits& limits = {}) {
  const auto dataset = data.dataset();
  const Variable& variable = dataset->variable(name);
  return plan_sample(variable, facts_of(variable), limits);
}

VariableSample read(const MemoryData& data, const std::string& name) {
  const auto dataset = data.dataset();
  Log log;
  Engine engine({.threads = 2, .memory = 64 << 20, .prefetch = false}, log);
  const Variable& variable = dataset->variable(name);
  return read_sample(engine, variable, plan_sample(variable, facts_of(variable), {}));
}

TEST(SamplePlan, IsThePlaneInTheMiddle) {
  MemoryData data;
  data.declare("t", "<f4", {"time", "level", "lat", "lon"}, {100, 13, 50, 80}, {1, 1, 50, 80});
  const SamplePlan found = plan(data, "t");
  ASSERT_TRUE(found.plane);
  EXPECT_EQ(found.plane->lines, 2u);
  EXPECT_EQ(found.plane->columns, 3u);
  EXPECT_EQ(found.box, (Box{{50, 6, 0, 0}, {1, 1, 50, 80}}));
  EXPECT_EQ(found.chunks, 1);
  EXPECT_EQ(found.bytes, 50u * 80 * 4);
  EXPECT_TRUE(found.is_whole_plane);
}

TEST(SamplePlan, IsTheMiddleOfAPlaneOfManyChunks) {
  MemoryData data;
  data.declare("t", "|u1", {"y", "x"}, {1'000'000, 1'000'000}, {1000, 1000});
  const SamplePlan found = plan(data, "t");
  EXPECT_FALSE(found.is_whole_plane);
  EXPECT_LE(found.chunks, SampleLimits::kMaxChunks);
  EXPECT_GE(found.chunks, SampleLimits::kMaxChunks / 2);
  for (const std::size_t d : {0u, 1u}) {
    EXPECT_EQ(found.box.start[d] % 1000, 0);
    EXPECT_NEAR(static_cast<double>(found.box.start[d] + found.box.shape[d] / 2), 500'000, 1000);
  }
}

TEST(SamplePlan, KeepsToTheLimitOfBytes) {
  MemoryData data;
  data.declare("t", "<f4", {"y", "x"}, {1000, 1000}, {100, 100})
      .declare("deep", "<f4", {"time", "j", "i"}, {100'000, 100, 100}, {100'000, 100, 100});
  SampleLimits limits;
  limits.bytes = 10 * 100 * 100 * 4;
  const SamplePlan found = plan(data, "t", limits);
  EXPECT_LE(found.bytes, limits.bytes);
  EXPECT_GT(found.chunks, 4);
  EXPECT_THROW(plan(data, "deep", limits), Error);  // one chunk is past it
}

TEST(SamplePlan, OfFewDimensionsAndOfNone) {
  MemoryData data;
  data.declare("line", "<f4", {"time"}, {500}, {100})
      .declare("one", "<f4", {}, {}, {})
      .declare("empty", "<f4", {"x", "y"}, {0, 5}, {1, 5})
      .declare("text", "<U3", {"a", "b"}, {2, 2}, {2, 2});
  EXPECT_EQ(plan(data, "line").chunks, 5);
  EXPECT_FALSE(plan(data, "line").plane);
  EXPECT_EQ(plan(data, "one").chunks, 1);
  EXPECT_TRUE(plan(data, "empty").box.empty());
  EXPECT_THROW(plan(data, "text"), Error);
}

TEST(SampleSummary, CountsMissingAndInfiniteValues) {
  const std::vector<float> values{1, 2, kNaN, 4, INFINITY, -INFINITY, kNaN, 2};
  const SampleSummary found = summarize(float32(), std::as_bytes(std::span(values)));
  EXPECT_EQ(found.count, 8);
  EXPECT_EQ(found.missing, 2);
  EXPECT_EQ(found.infinite, 2);
  EXPECT_EQ(found.finite(), 4);
  EXPECT_EQ(found.min, 1);
  EXPECT_EQ(found.max, 4);
  EXPECT_EQ(found.mean, 2.25);
  EXPECT_EQ(std::accumulate(found.histogram.begin(), found.histogram.end(), std::int64_t{0}), 4);
  EXPECT_EQ(found.histogram.front(), 1);
  EXPECT_EQ(found.histogram.back(), 1);
}

TEST(SampleSummary, OfTheLargestNumbersAndOfNothing) {
  const double most = std::numeric_limits<double>::max();
  const std::vector<double> far{-most, most, 0};
  const SampleSummary found = summarize(float64(), std::as_bytes(std::span(far)));
  EXPECT_EQ(found.histogram.front(), 1);
  EXPECT_EQ(found.histogram.back(), 1);
  const std::vector<float> missing{kNaN};
  EXPECT_TRUE(summarize(float32(), std::as_bytes(std::span(missing))).histogram.empty());
  EXPECT_EQ(summarize(float32(), {}).count, 0);
}

TEST(VariableSample, HoldsTheValuesOfTheMiddle) {
  MemoryData data;
  std::vector<float> values(3 * 2 * 4);
  std::iota(values.begin(), values.end(), 0.0F);
  data.add<float>("t", "<f4", {"time", "lat", "lon"}, {3, 2, 4}, values);
  const VariableSample found = read(data, "t");
  EXPECT_EQ(found.across, 4);
  EXPECT_EQ(found.down, 2);
  EXPECT_EQ(found.summary.min, 8);
  EXPECT_EQ(found.summary.max, 15);
  EXPECT_EQ(found.means.values, (std::vector<double>{8, 9, 10, 11, 12, 13, 14, 15}));
}

TEST(VariableSample, TriesOtherPlacesWhereTheMiddleIsMissing) {
  MemoryData data;
  data.add<float>("t", "<f4", {"time", "x", "y"}, {3, 1, 2}, {1, 2, kNaN, kNaN, 5, 6})
      .add<float>("late", "<f4", {"time", "x", "y"}, {3, 1, 2}, {kNaN, kNaN, kNaN, kNaN, 5, 6})
      .add<float>("none", "<f4", {"time", "x", "y"}, {3, 1, 2}, std::vector<float>(6, kNaN));
  EXPECT_EQ(read(data, "t").plan.box.start[0], 0);
  EXPECT_EQ(read(data, "t").summary.max, 2);
  EXPECT_EQ(read(data, "late").plan.box.start[0], 2);
  EXPECT_EQ(read(data, "none").plan.box.start[0], 1);
  EXPECT_EQ(read(data, "none").summary.missing, 2);
}

TEST(VariableSample, ValuesAreDecoded) {
  MemoryData data;
  data.add<std::int16_t>("t", "<i2", {"y", "x"}, {1, 3}, {100, -1, 300},
                         {{"scale_factor", 0.5}, {"add_offset", 10}, {"_FillValue", -1}});
  const VariableSample found = read(data, "t");
  EXPECT_EQ(found.summary.min, 60);
  EXPECT_EQ(found.summary.max, 160);
  EXPECT_EQ(found.summary.missing, 1);
}

}  // namespace variable_sample_test
}  // namespace batchfs
