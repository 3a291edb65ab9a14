#include "engine/view/split/split_axis.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/view/assembled.h"

namespace batchfs {
namespace split_axis_test {

using testing::ElementsAre;
using testing::HasSubstr;

/// Months of 1999 and 2000 without January 2000; latitudes; a basin of each latitude.
std::shared_ptr<const Dataset> data() {
  std::vector<std::int64_t> days;
  for (std::int64_t month = 0; month < 24; ++month)
    if (month != 12)
      days.push_back(days_from_civil(1999 + month / 12, static_cast<int>(month % 12) + 1, 15));
  return MemoryData()
      .declare("v", "<f4", {"time", "lat"}, {23, 6}, {4, 6})
      .index("time", "<M8[D]", days)
      .index<float>("lat", "<f4", {0, 0.5F, 1, 1.5F, 2, 2.5F})
      .add<std::int32_t>("basin", "<i4", {"lat"}, {6}, {7, 7, 3, 7, 3, 3})
      .dataset();
}

std::vector<SplitAxis> axes(const std::string& split,
                            const std::string& window = R"("time": 1, "lat": 1)",
                            const std::string& select = "{}") {
  const std::string text = R"({"batch": 1, "window": {)" + window + R"(}, "select": )" + select +
                           R"(, "split": )" + split + "}";
  const auto view = View::parse(data(), text, "v", "file.json", {.first_part = true});
  std::vector<SplitAxis> result;
  visit_windows(*view, [&](const RestrictedView& restricted, const ViewScan&) {
    result = split_axes(restricted, *view->spec().split);
  });
  return result;
}

TEST(SplitAxis, RegionsCutAtTheirEnds) {
  const auto found = axes(
      R"({"parts": {"a": "rest", "b": [{"time": "2000-03"}, {"lat": {"from": 1, "to": 2}, "time": "1999"}]}})");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_THAT(found[0].begins, ElementsAre(0, 12, 13, 14, 23));
  EXPECT_THAT(found[0].regions, ElementsAre(2, 0, 1, 0));
  EXPECT_THAT(found[1].begins, ElementsAre(0, 2, 5, 6));
  EXPECT_THAT(found[1].regions, ElementsAre(1, 3, 1));
  EXPECT_EQ(found[0].cell_of(11), 0);
  EXPECT_EQ(found[0].cell_of(12), 1);
  EXPECT_EQ(found[0].cell_of(22), 3);
}

TEST(SplitAxis, PositionsOfRegionsCountInTheSelection) {
  const auto cuts = [](const std::string& region, const std::string& select) {
    const auto found = axes(R"({"parts": {"a": "rest", "b": [{"lat": )" + region + "}]}}",
                            R"("time": 1, "lat": 1)", select);
    return std::pair(found.at(0).begins, found.at(0).regions);
  };
  using Cuts = std::pair<std::vector<std::int64_t>, std::vector<std::uint64_t>>;
  const char *range = R"({"lat": {"from": "#2"}})", *list = R"({"lat": [2.5, 0, 1, 0.5]})";
  EXPECT_EQ(cuts(R"({"from": "#0", "to": "#2"})", range), Cuts({0, 2, 4}, {1, 0}));
  EXPECT_EQ(cuts(R"("#-1")", range), Cuts({0, 3, 4}, {0, 1}));
  EXPECT_EQ(cuts(R"({"from": 0, "step": 3})", range), Cuts({0, 1, 3, 4}, {1, 0, 1}));
  EXPECT_EQ(cuts(R"({"from": "#-1", "to": "#1", "wrap": true})", list),
            Cuts({0, 1, 3, 4}, {1, 0, 1}));
  EXPECT_EQ(cuts(R"({"from": "#1", "to": "#9"})", list), Cuts({0, 1, 4}, {0, 1}));
  EXPECT_EQ(cuts(R"({"from": 1, "to": 9})", list), Cuts({0, 1, 2, 3, 4}, {1, 0, 1, 0}));
}

TEST(SplitAxis, MessagesNameThePositionsOfTheSelection) {
  const auto plain = MemoryData().declare("v", "<f4", {"x"}, {10}, {5}).dataset();
  const auto view = [&](const std::string& parts) {
    View::parse(plain,
                R"({"window": {"x": 1}, "select": {"x": {"from": "#4"}}, "split": {"parts": )" +
                    parts + "}}",
                "v", "file.json", {.first_part = true});
  };
  EXPECT_THAT(error_of([&] {
                view(R"({"a": [{"x": {"to": "#3"}}], "b": [{"x": {"from": "#2"}}]})");
              }).why(),
              HasSubstr("they share 1 position, the first at x #2"));
}

TEST(SplitAxis, BlocksOfMonthsSkipThoseWithoutData) {
  const auto found = axes(R"({"blocks": {"time": "3mo"}, "fractions": {"a": 1}, "draw": "hash"})");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].begins, ElementsAre(0, 3, 6, 9, 12, 14, 17, 20, 23));
  EXPECT_EQ(found[0].class_count, 8);
  EXPECT_EQ(found[0].texts.front(), "116");  // quarters since 1970
  EXPECT_EQ(found[0].texts[4], "120");
}

TEST(SplitAxis, BlocksOfPositions) {
  const auto found = axes(R"({"blocks": {"lat": 4}, "fractions": {"a": 1}, "draw": "hash"})");
  EXPECT_THAT(found[0].begins, ElementsAre(0, 4, 6));
  EXPECT_THAT(found[0].texts, ElementsAre("0.0", "2.0"));
}

TEST(SplitAxis, GroupsAreNumberedAsTheyAppear) {
  const auto basins = axes(R"({"groups": {"basin": "value"}, "fractions": {"a": 1}})");
  EXPECT_THAT(basins[0].begins, ElementsAre(0, 2, 3, 4, 6));
  EXPECT_THAT(basins[0].classes, ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(basins[0].texts, ElementsAre("7", "3"));
  const auto seasons = axes(R"({"groups": {"time": "season"}, "fractions": {"a": 1}})");
  EXPECT_THAT(seasons[0].begins, ElementsAre(0, 2, 5, 8, 11, 13, 16, 19, 22, 23));
  EXPECT_THAT(seasons[0].texts, ElementsAre("DJF", "MAM", "JJA", "SON"));
}

TEST(SplitAxis, WhatCannotBeCutIsAnError) {
  const auto why = [](const std::string& split, const std::string& window = R"("time": 1)") {
    return error_of([&] { axes(split, window); }).why();
  };
  EXPECT_THAT(why(R"({"blocks": {"lat": 2}, "folds": 2})"),
              HasSubstr("split.blocks.lat: 'lat' is not a dimension of \"window\"; there is time"));
  EXPECT_THAT(
      why(R"({"blocks": {"time": 2}, "folds": 2, "gap": {"tim": 1}})"),
      HasSubstr("split.gap.tim: 'tim' is not a dimension of \"window\", did you mean 'time'?"));
  EXPECT_THAT(why(R"({"blocks": {"lat": "2d"}, "folds": 2})", R"("lat": 1)"),
              HasSubstr("split.blocks.lat: 'lat' has no coordinate of times"));
  EXPECT_THAT(
      why(R"({"groups": {"basn": "value"}, "folds": 2})", R"("lat": 1)"),
      HasSubstr("split.groups.basn: no coordinate or variable 'basn', did you mean 'basin'?"));
  EXPECT_THAT(why(R"({"groups": {"v": "value"}, "folds": 2})"), HasSubstr("'v' has 2 dimensions"));
  EXPECT_THAT(why(R"({"groups": {"basin": "year"}, "folds": 2})", R"("lat": 1)"),
              HasSubstr("split.groups.basin: 'basin' holds no dates"));
  EXPECT_THAT(why(R"({"parts": {"a": "rest", "b": [{"time": "2005"}]}})"),
              HasSubstr("split.parts.b[0].time"));
}

}  // namespace split_axis_test
}  // namespace batchfs
