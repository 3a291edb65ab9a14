#include "engine/view/samples/where.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace where_test {

using testing::ElementsAre;
using testing::HasSubstr;

/// The positions of a selection that fulfil a condition, of every 20 days from 1970-01-01 06:00 and
/// of a NaT.
std::vector<std::int64_t> fulfilled(const std::string& condition, const Positions& selected) {
  const auto dataset =
      MemoryData()
          .index<std::int64_t>("time", "<M8[h]", {6, 486, 966, 1446, 1926, INT64_MIN, 2886})
          .dataset();
  const Json json = parse_json(R"({"where": {"time": )" + condition + "}}", "");
  const SampleSpec spec = parse_samples({json, "samples"});
  std::vector<std::int64_t> result;
  const std::vector<bool> rejected = rejected_positions(spec.where.at(0), *dataset, selected);
  for (std::size_t i = 0; i < rejected.size(); ++i)
    if (!rejected[i]) result.push_back(static_cast<std::int64_t>(i));
  return result;
}

// 1970-01-01, -01-21, -02-10, -03-02, -03-22, NaT, -05-01, all at 06:00.
TEST(Where, FieldsOfTheCalendar) {
  const Positions all = Positions::range(0, 7);
  EXPECT_THAT(fulfilled(R"({"month": [1, 5]})", all), ElementsAre(0, 1, 6));
  EXPECT_THAT(fulfilled(R"({"season": ["DJF"]})", all), ElementsAre(0, 1, 2));
  EXPECT_THAT(fulfilled(R"({"day": [1, 2]})", all), ElementsAre(0, 3, 6));
  EXPECT_THAT(fulfilled(R"({"dayofyear": [41]})", all), ElementsAre(2));
  EXPECT_THAT(fulfilled(R"({"weekday": [3]})", all), ElementsAre(0));  // a Thursday
  EXPECT_THAT(fulfilled(R"({"year": [1970], "hour": [6], "minute": [0]})", all),
              ElementsAre(0, 1, 2, 3, 4, 6));
  EXPECT_THAT(fulfilled(R"({"month": [3], "day": [22]})", all), ElementsAre(4));
}

TEST(Where, SelectorsAndBoth) {
  EXPECT_THAT(fulfilled(R"({"from": "1970-02"})", Positions::range(0, 7)), ElementsAre(2, 3, 4, 6));
  EXPECT_THAT(fulfilled(R"({"from": "1970-02", "month": [1, 3]})", Positions::range(0, 7)),
              ElementsAre(3, 4));
  EXPECT_THAT(fulfilled(R"(["#1", "1970-05-01T06"])", Positions::range(0, 7)), ElementsAre(1, 6));
  EXPECT_THAT(fulfilled(R"({"month": [3]})", Positions::list({6, 4, 0, 3})), ElementsAre(1, 3));
}

TEST(Where, PositionsCountInTheSelection) {
  const Positions range = Positions::range(2, 4), mixed = Positions::list({6, 4, 0, 3});
  EXPECT_THAT(fulfilled(R"({"from": "#0", "to": "#2"})", range), ElementsAre(0, 1));
  EXPECT_THAT(fulfilled(R"({"from": "#3", "to": "#5"})", range), ElementsAre(3));
  EXPECT_THAT(fulfilled(R"({"from": "#-3", "to": "#-1"})", mixed), ElementsAre(1, 2));
  EXPECT_THAT(fulfilled(R"({"from": "#-1", "to": "#1", "wrap": true})", mixed), ElementsAre(0, 3));
  EXPECT_THAT(fulfilled(R"({"from": "#1", "step": 2})", range), ElementsAre(1, 3));
  EXPECT_THAT(fulfilled(R"("#-1")", range), ElementsAre(3));
  EXPECT_THAT(fulfilled(R"(["#0", "1970-03-02T06"])", range), ElementsAre(0, 1));
  EXPECT_THAT(fulfilled(R"({"from": "#1", "month": [1, 3]})", mixed), ElementsAre(1, 2, 3));
}

TEST(Where, StepsCountTheLabelsOfTheSelection) {
  EXPECT_THAT(fulfilled(R"({"from": "1970-01-01", "step": 2})", Positions::range(1, 4)),
              ElementsAre(0, 2));
  EXPECT_THAT(fulfilled(R"({"step": 3})", Positions::range(1, 6)), ElementsAre(0, 3));
  // From March on, in the order of the selection: -05-01, -03-22, -03-02.
  EXPECT_THAT(fulfilled(R"({"from": "1970-03", "step": 2})", Positions::list({6, 0, 4, 3})),
              ElementsAre(0, 3));
  EXPECT_THAT(fulfilled(R"({"from": "1970-01", "step": 2, "month": [3]})", Positions::range(1, 4)),
              ElementsAre(2));
}

TEST(Where, ALabelThatTheSelectionRepeatsIsFulfilledEachTime) {
  EXPECT_THAT(fulfilled(R"("1970-02-10T06")", Positions::list({2, 0, 2})), ElementsAre(0, 2));
  EXPECT_THAT(fulfilled(R"({"from": "1970-02", "step": 2})", Positions::list({2, 0, 2, 3})),
              ElementsAre(0, 3));
}

TEST(Where, LabelsOutsideTheSelectionAreLeftOut) {
  const Positions range = Positions::range(2, 3);
  EXPECT_THAT(fulfilled(R"("1970-01-01T06")", range), ElementsAre());
  EXPECT_THAT(fulfilled(R"(["1970-01-01T06", "1970-02-10T06"])", range), ElementsAre(0));
  EXPECT_THAT(fulfilled(R"({"to": "1970-01", "step": 2, "month": [1]})", range), ElementsAre());
  EXPECT_THAT(fulfilled(R"({"to": "1970-02"})", range), ElementsAre(0));
  EXPECT_THAT(fulfilled(R"({"month": [5]})", range), ElementsAre());
}

TEST(Where, PositionsThatTheSelectionLacksAreErrors) {
  const struct {
    const char *condition, *says;
  } cases[] = {
      {R"("#4")",
       "samples.where.time: position '#4' is outside of the selection of 'time', which has 4"},
      {R"(["#0", "#-5"])", "position '#-5' is outside of the selection of 'time', which has 4"},
      {R"({"from": "#4", "to": "#6"})",
       "the range of positions is empty: the selection of 'time' has 4"},
      {R"({"from": "#4", "to": "#1", "wrap": true})", "'#4' is outside of the selection of 'time'"},
      {R"({"from": "#0", "month": [5]})", "none of 4 times of 'time', from 1970-02-10T06:00:00"}};
  for (const auto& c : cases)
    EXPECT_THAT(error_of([&] { fulfilled(c.condition, Positions::range(2, 4)); }).why(),
                HasSubstr(c.says));
  EXPECT_THAT(error_of([&] { fulfilled(R"("#7")", Positions::range(0, 7)); }).why(),
              HasSubstr("position '#7' is outside of 'time', which has 7"));
}

TEST(Where, WhatTheDimensionLacksIsAnError) {
  EXPECT_THAT(error_of([] {
                fulfilled(R"({"from": "1980", "to": "1990"})", Positions::range(0, 7));
              }).why(),
              HasSubstr("samples.where.time: nothing of 'time'"));
}

}  // namespace where_test
}  // namespace batchfs
