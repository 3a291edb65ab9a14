#include "engine/write/prediction/described_axes.h"

#include <cstring>

#include <gmock/gmock.h>

#include "engine/write/prediction/epoch_samples.h"
#include "tests/unit/engine/view/assembled.h"

namespace batchfs {
namespace described_axes_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

struct DescribedAxesTest : testing::Test {
  explicit DescribedAxesTest(const std::string& window =
                                 R"({"time": {"size": 2, "stride": 3},
                                     "lon": {"size": 3, "stride": 2, "wrap": true}})") {
    data.declare("a", "<f4", {"time", "level", "lat", "lon"}, {8, 3, 4, 6}, {1, 3, 4, 6})
        .index<std::int32_t>("time", "<i4", {0, 6, 12, 18, 24, 30, 36, 42},
                             {{"units", "hours since 2000-01-01"}, {"long_name", "valid time"}})
        .index<std::int32_t>("level", "<i4", {1000, 850, 500}, {{"units", "hPa"}});
    view = parse_view(data.dataset(),
                      R"({"batch": 2, "select": {"time": {"from": "#1", "to": "#8"},
                                                 "level": [850, 500]},
                          "window": )" +
                          window + "}");
    epoch = samples_of_epoch(*view, 0);
    axes = std::make_unique<AxisDescriber>(*view, epoch.samples);
  }
  static std::vector<std::int64_t> counts(const CoordinateLabels& labels) {
    std::vector<std::int64_t> values(labels.values.size() / 8);
    std::memcpy(values.data(), labels.values.data(), labels.values.size());
    return values;
  }
  MemoryData data;
  std::shared_ptr<const View> view;
  EpochSamples epoch;
  std::unique_ptr<AxisDescriber> axes;
};

TEST_F(DescribedAxesTest, AWholeDimensionHasTheSelectionsLabels) {
  const DescribedAxis level = axes->whole("level", 2, "a");
  EXPECT_EQ(level.axis.length, 2);
  EXPECT_EQ(level.axis.window, -1);
  ASSERT_NE(level.axis.labels, nullptr);
  EXPECT_EQ(level.axis.labels->attributes, Json({{"units", "hPa"}}));
  std::int32_t labels[2];
  ASSERT_EQ(level.axis.labels->values.size(), sizeof labels);
  std::memcpy(labels, level.axis.labels->values.data(), sizeof labels);
  EXPECT_THAT(labels, ElementsAre(850, 500));
  EXPECT_EQ(axes->whole("lat", 4, "a").axis.labels, nullptr);
  EXPECT_THAT(error_of([&] { axes->whole("level", 1, "coarse"); }).why(),
              HasSubstr("the tensor 'coarse' has other positions along 'level'"));
}

TEST_F(DescribedAxesTest, AWindowHasABlockForEachRunOfOffsets) {
  const DescribedAxis time = axes->windowed("time", Json::array({0}), 2, "a");
  EXPECT_EQ(time.axis.length, 7);
  EXPECT_EQ(time.axis.window, 0);
  EXPECT_FALSE(time.axis.wraps);
  EXPECT_THAT(time.axis.blocks, ElementsAre(Pair(0, 2)));
  EXPECT_THAT(counts(*time.axis.labels), ElementsAre(0, 6, 12, 18, 24, 30, 36));
  EXPECT_EQ(time.axis.labels->attributes["units"], "hours since 2000-01-01 06:00:00");
  EXPECT_EQ(time.axis.labels->attributes["long_name"], "valid time");
  EXPECT_TRUE(axes->windowed("lon", Json::array({0}), 3, "a").axis.wraps);
  // -12 h is two steps; the blocks of 1 and of 3 steps follow each other.
  const DescribedAxis several = axes->windowed("time", {"-12h", 1, 3}, 6, "a");
  EXPECT_THAT(several.axis.blocks, ElementsAre(Pair(-2, 2), Pair(1, 4)));
  EXPECT_THAT(several.steps, ElementsAre(-2, -1, 1, 2, 3, 4));
  EXPECT_THAT(error_of([&] { axes->windowed("time", {"3h"}, 2, "a"); }).why(),
              HasSubstr("'3h' is not a whole number of positions of 'time'"));
  EXPECT_THAT(error_of([&] { axes->windowed("time", {"1mo"}, 2, "a"); }).why(),
              HasSubstr("'1mo' along 'time' is not the same number of positions everywhere"));
  EXPECT_THAT(error_of([&] { axes->windowed("time", Json::array({0}), 1, "a"); }).why(),
              HasSubstr("other positions along 'time'"));
}

TEST_F(DescribedAxesTest, StartsHaveTheLabelsThatWindowsBeginAt) {
  const DescribedAxis start = axes->by_start("init_time", "time");
  EXPECT_TRUE(start.axis.by_start);
  EXPECT_EQ(start.axis.length, 2);  // windows begin at 0 and 3
  EXPECT_EQ(start.order, -1);
  EXPECT_THAT(counts(*start.axis.labels), ElementsAre(0, 18));
  EXPECT_EQ(start.axis.labels->attributes["units"], "hours since 2000-01-01 06:00:00");
  EXPECT_THAT(counts(*axes->by_start("lon", "lon").axis.labels), ElementsAre(0, 2, 4));
}

TEST_F(DescribedAxesTest, LeadsAreTimeSinceTheStart) {
  EXPECT_EQ(axes->time_dim(), "time");
  const DescribedAxis lead = axes->lead(axes->windowed("time", {1, 3}, 4, "a"));
  EXPECT_EQ(lead.axis.name, "lead_time");
  EXPECT_EQ(lead.axis.length, 4);
  EXPECT_EQ(lead.axis.window, -1);
  EXPECT_EQ(lead.window, 0);
  EXPECT_THAT(counts(*lead.axis.labels), ElementsAre(6, 12, 18, 24));
  EXPECT_EQ(lead.axis.labels->attributes["units"], "hours");
  const DescribedAxis steps = axes->lead(axes->windowed("lon", Json::array({0}), 3, "a"));
  EXPECT_THAT(counts(*steps.axis.labels), ElementsAre(0, 1, 2));
  EXPECT_THAT(steps.axis.labels->attributes["long_name"].get<std::string>(),
              HasSubstr("steps along lon"));
}

struct SpaceWindows : DescribedAxesTest {
  SpaceWindows() : DescribedAxesTest(R"({"lat": {"size": 3, "edge": "partial"}})") {}
};

TEST_F(SpaceWindows, HaveNoTimeAndMayBePartial) {
  EXPECT_THAT(error_of([&] { axes->time_dim(); }).why(), HasSubstr("time=\"lead\" needs"));
  EXPECT_TRUE(axes->windowed("lat", Json::array({0}), 3, "a").axis.partial);
  EXPECT_EQ(axes->window_of("lat"), 0);
  EXPECT_EQ(axes->window_of("time"), -1);
}

}  // namespace described_axes_test
}  // namespace batchfs
