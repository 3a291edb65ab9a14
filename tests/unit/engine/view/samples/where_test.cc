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
  EXPECT_THAT(fulfilled(R"({"from": "#3", "to": "#5"})", Positions::list({6, 4, 0, 3})),
              ElementsAre(1, 3));
}

TEST(Where, WhatTheDimensionLacksIsAnError) {
  EXPECT_THAT(error_of([] {
                fulfilled(R"({"from": "1980", "to": "1990"})", Positions::range(0, 7));
              }).why(),
              HasSubstr("samples.where.time: nothing of 'time'"));
}

}  // namespace where_test
}  // namespace batchfs
