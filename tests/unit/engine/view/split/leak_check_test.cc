#include "engine/view/split/leak_check.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/view/assembled.h"

namespace batchfs {
namespace leak_check_test {

std::shared_ptr<const Dataset> data() {
  std::vector<std::int32_t> hours;
  for (std::int32_t i = 0; i < 100; ++i) hours.push_back(6 * i);
  return MemoryData()
      .declare("v", "<f4", {"time", "x", "y"}, {100, 20, 20}, {10, 20, 20})
      .index("time", "<i4", hours, {{"units", "hours since 2000-01-01"}})
      .dataset();
}

std::vector<std::shared_ptr<const View>> views(const std::string& text,
                                               const std::vector<std::string>& parts) {
  std::vector<std::shared_ptr<const View>> result;
  for (const std::string& part : parts)
    result.push_back(View::parse(data(), text, "v", "f", {.part = part}));
  return result;
}

TEST(LeakCheck, DistancesAreOfWhatSamplesTake) {
  const LeakCheck check = check_leaks(views(
      R"({"window": {"time": {"size": 2, "stride": 1}},
          "split": {"parts": {"train": "rest", "val": [{"time": {"from": "#40", "to": "#45"}}]}, "gap": {"time": "10d"}}})",
      {"train", "val"}));
  EXPECT_TRUE(check.made);
  EXPECT_EQ(check.shared, 0);
  ASSERT_EQ(check.distances.size(), 1u);
  EXPECT_EQ(check.distances[0].a, "train");
  EXPECT_EQ(check.distances[0].b, "val");
  EXPECT_EQ(check.distances[0].positions, 41);
  EXPECT_EQ(check.distances[0].time, "10d 6h");
}

TEST(LeakCheck, OtherViewsShareWhatTheyShare) {
  // Parts of different splits, which no single split would make.
  const auto part = [](const std::string& from, const std::string& name) {
    return View::parse(
        data(),
        R"({"window": {"time": 1, "x": {"size": 2, "stride": 2}},
        "split": {"parts": {"a": [{"time": {"from": ")" +
            from +
            R"(", "to": "#90"}, "x": {"from": "#4", "to": "#10"}}], "b": [{"time": "#95"}]}}})",
        name, "f", {.part = "a"});
  };
  const LeakCheck check = check_leaks({part("#20", "u"), part("#85", "v")});
  EXPECT_EQ(check.shared, 5 * 6);
  for (const LeakCheck::Distance& distance : check.distances) EXPECT_EQ(distance.positions, 0);
}

TEST(LeakCheck, AlongSeveralDimensionsWithinTheGapOfTheOthers) {
  const LeakCheck check = check_leaks(views(
      R"({"window": {"x": {"size": 2, "stride": 1}, "y": 1, "time": 10},
          "split": {"parts": {"train": "rest", "val": [{"x": {"from": "#8", "to": "#12"}, "y": {"from": "#5", "to": "#15"}}]},
                    "gap": {"x": 3, "y": 2}}})",
      {"train", "val"}));
  EXPECT_EQ(check.shared, 0);
  ASSERT_EQ(check.distances.size(), 2u);
  EXPECT_EQ(check.distances[0].dim, "x");
  EXPECT_EQ(check.distances[0].positions, 4);
  EXPECT_EQ(check.distances[1].dim, "y");
  EXPECT_EQ(check.distances[1].positions, 3);
}

TEST(LeakCheck, OnACircleAlsoOverTheEnd) {
  const LeakCheck check = check_leaks(views(
      R"({"window": {"x": {"size": 1, "wrap": true}},
          "split": {"parts": {"a": [{"x": {"from": "#1", "to": "#6"}}], "b": [{"x": {"from": "#12", "to": "#19"}}]}}})",
      {"a", "b"}));
  ASSERT_EQ(check.distances.size(), 1u);
  EXPECT_EQ(check.distances[0].positions, 3);  // from 18 over 19 and 0 to 1
}

}  // namespace leak_check_test
}  // namespace batchfs
