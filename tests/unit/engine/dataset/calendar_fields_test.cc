#include "engine/dataset/calendar_fields.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace calendar_fields_test {

using testing::HasSubstr;

constexpr __int128 kHour = static_cast<__int128>(3600) * kNanosecondsPerSecond;

CalendarTest of_json(const std::string& field, const Json& values) {
  CalendarTest test;
  test.add(*parse_calendar_field(field), JsonRef(values, "select.time." + field));
  return test;
}

CalendarTest of_text(const std::string& field, const std::string& values) {
  CalendarTest test;
  test.add(*parse_calendar_field(field), values, "--select time." + field + "=" + values);
  return test;
}

bool passes(const CalendarTest& test, __int128 nanoseconds) {
  return test.passes(Calendar::proleptic_gregorian, nanoseconds);
}

// pandas.Timestamp("1970-01-01"): a Thursday in winter.
TEST(CalendarTest, FieldsAreThoseOfPandas) {
  const std::pair<const char*, Json> first[] = {{"year", 1970},   {"month", 1},     {"day", {2, 1}},
                                                {"hour", 0},      {"minute", 0},    {"weekday", 3},
                                                {"dayofyear", 1}, {"season", "DJF"}};
  for (const auto& [field, value] : first) {
    EXPECT_TRUE(passes(of_json(field, value), 0)) << field;
    EXPECT_FALSE(passes(of_json(field, value), (365 + 180) * 24 * kHour + kHour + kHour / 4))
        << field;
  }
  EXPECT_EQ(parse_calendar_field("months"), std::nullopt);
}

TEST(CalendarTest, EveryConditionMustHold) {
  CalendarTest test = of_text("month", "1,6:8");
  EXPECT_TRUE(passes(test, 6 * kHour));
  test.add(CalendarField::hour, JsonRef(Json::array({0.0, 12}), "hour"));
  EXPECT_FALSE(passes(test, 6 * kHour));
  EXPECT_TRUE(passes(test, 12 * kHour));
  EXPECT_TRUE(passes(test, (31 + 28 + 31 + 30 + 31 + 30) * 24 * kHour));  // July
  EXPECT_FALSE(passes(test, (31 + 28) * 24 * kHour));
  EXPECT_EQ(test.text(), "month 1, 6:8 and hour 0, 12");
  EXPECT_TRUE(CalendarTest().empty());
  EXPECT_FALSE(passes(test, static_cast<__int128>(INT64_MAX) * INT64_MAX));
}

TEST(CalendarTest, WhatAFieldNeverIsNamesItsPlace) {
  const struct {
    const char* field;
    Json value;
    const char* says;
  } json[] = {
      {"month", 13, "select.time.month: '13' is not a month: it is a whole number from 1 to 12"},
      {"month", {6, 0}, "select.time.month[1]: '0' is not a month"},
      {"month", "June", "select.time.month: 'June' is not a month"},
      {"month", Json::array(), "select.time.month: the list is empty"},
      {"hour", 24, "from 0 to 23"},
      {"weekday", 7, "from 0 to 6, Monday to Sunday"},
      {"season", "winter", "'winter' is not a season; there are DJF, MAM, JJA, SON"},
      {"season", 1, "select.time.season: "},
      {"year", INT64_MAX, "is not a year"},
      {"day", 1.5, "select.time.day: "}};
  for (const auto& c : json)
    EXPECT_THAT(error_of([&] { of_json(c.field, c.value); }).why(), HasSubstr(c.says));
  for (const auto& [values, says] : std::initializer_list<std::pair<const char*, const char*>>{
           {"", "--select time.month=: '' is not a month"},
           {"6,", "'' is not a month"},
           {"6:", "'' is not a month"},
           {"11:2", "11 to 2 is not a range; write 11:12,1:2"},
           {"99999999999999999999", "is not a month"}})
    EXPECT_THAT(error_of([&, &v = values] { of_text("month", v); }).why(), HasSubstr(says));
}

TEST(CalendarTest, TimesOfAnIndexInTheirCalendar) {
  MemoryData data;
  data.index<std::int32_t>(
          "time", "<i4", {58, 59, 60, -1},
          {{"units", "days since 2000-01-01"}, {"calendar", "360_day"}, {"_FillValue", -1}})
      .index<float>("x", "<f4", {1, 2});
  const auto dataset = data.dataset();
  EXPECT_EQ(passing_times(*dataset, "time", of_text("month", "2"), "select.time"),
            (std::vector<bool>{true, true, false, false}));
  EXPECT_EQ(passing_times(*dataset, "time", of_text("day", "30"), "select.time"),
            (std::vector<bool>{false, true, false, false}));
  EXPECT_THAT(
      error_of([&] { passing_times(*dataset, "x", of_text("day", "30"), "select.x"); }).why(),
      HasSubstr("select.x: 'x' holds no times, so that it has no day 30"));
}

}  // namespace calendar_fields_test
}  // namespace batchfs
