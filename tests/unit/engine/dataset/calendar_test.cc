#include "engine/dataset/calendar.h"

#include <gmock/gmock.h>

#include "engine/dataset/calendar_fields.h"

namespace batchfs {
namespace calendar_test {

struct Case {
  const char* calendar;
  std::int64_t days;
  Date date;
  int weekday, dayofyear;
};

// d = cftime.num2date(days, "days since 1970-01-01", calendar, has_year_zero=True):
// (d.year, d.month, d.day), d.dayofwk, d.dayofyr
const Case kCases[] = {
    {"standard", 0, {1970, 1, 1}, 3, 1},
    {"standard", -1, {1969, 12, 31}, 2, 365},
    {"standard", 59, {1970, 3, 1}, 6, 60},
    {"standard", 11016, {2000, 2, 29}, 1, 60},
    {"standard", -141427, {1582, 10, 15}, 4, 288},
    {"standard", -141428, {1582, 10, 4}, 3, 277},
    {"standard", -171600, {1500, 2, 25}, 1, 56},
    {"standard", -719163, {1, 1, 2}, 6, 2},
    {"standard", 1000000, {4707, 11, 29}, 4, 333},
    {"proleptic_gregorian", 0, {1970, 1, 1}, 3, 1},
    {"proleptic_gregorian", -1, {1969, 12, 31}, 2, 365},
    {"proleptic_gregorian", 59, {1970, 3, 1}, 6, 60},
    {"proleptic_gregorian", 11016, {2000, 2, 29}, 1, 60},
    {"proleptic_gregorian", -141427, {1582, 10, 15}, 4, 288},
    {"proleptic_gregorian", -141428, {1582, 10, 14}, 3, 287},
    {"proleptic_gregorian", -171600, {1500, 3, 6}, 1, 65},
    {"proleptic_gregorian", -719163, {0, 12, 31}, 6, 366},
    {"proleptic_gregorian", 1000000, {4707, 11, 29}, 4, 333},
    {"julian", 0, {1970, 1, 1}, 2, 1},
    {"julian", -1, {1969, 12, 31}, 1, 365},
    {"julian", 59, {1970, 3, 1}, 5, 60},
    {"julian", 11016, {2000, 2, 29}, 0, 60},
    {"julian", -141427, {1582, 10, 18}, 3, 291},
    {"julian", -141428, {1582, 10, 17}, 2, 290},
    {"julian", -171600, {1500, 3, 9}, 0, 69},
    {"julian", -719163, {1, 1, 15}, 5, 15},
    {"julian", 1000000, {4707, 11, 8}, 3, 312},
    {"noleap", 0, {1970, 1, 1}, 3, 1},
    {"noleap", -1, {1969, 12, 31}, 2, 365},
    {"noleap", 59, {1970, 3, 1}, 6, 60},
    {"noleap", 11016, {2000, 3, 8}, 1, 67},
    {"noleap", -141427, {1582, 7, 13}, 4, 194},
    {"noleap", -141428, {1582, 7, 12}, 3, 193},
    {"noleap", -171600, {1499, 11, 12}, 1, 316},
    {"noleap", -719163, {-1, 9, 10}, 6, 253},
    {"noleap", 1000000, {4709, 9, 23}, 4, 266},
    {"all_leap", 0, {1970, 1, 1}, 6, 1},
    {"all_leap", -1, {1969, 12, 31}, 5, 366},
    {"all_leap", 59, {1970, 2, 29}, 2, 60},
    {"all_leap", 11016, {2000, 2, 6}, 4, 37},
    {"all_leap", -141427, {1583, 8, 3}, 0, 216},
    {"all_leap", -141428, {1583, 8, 2}, 6, 215},
    {"all_leap", -171600, {1501, 2, 24}, 4, 55},
    {"all_leap", -719163, {5, 1, 28}, 2, 28},
    {"all_leap", 1000000, {4702, 3, 29}, 0, 89},
    {"360_day", 0, {1970, 1, 1}, 2, 1},
    {"360_day", -1, {1969, 12, 30}, 1, 360},
    {"360_day", 59, {1970, 2, 30}, 5, 60},
    {"360_day", 11016, {2000, 8, 7}, 0, 217},
    {"360_day", -141427, {1577, 2, 24}, 3, 54},
    {"360_day", -141428, {1577, 2, 23}, 2, 53},
    {"360_day", -171600, {1493, 5, 1}, 0, 121},
    {"360_day", -719163, {-28, 4, 28}, 5, 118},
    {"360_day", 1000000, {4747, 10, 11}, 3, 281},
};

TEST(Calendar, DatesAreThoseOfCftime) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(testing::Message() << c.calendar << " " << c.days);
    const Calendar calendar = *parse_calendar(c.calendar);
    EXPECT_EQ(calendar_name(calendar), c.calendar);
    const Date date = date_from_days(calendar, c.days);
    EXPECT_EQ(date, c.date) << date.year << "-" << date.month << "-" << date.day;
    EXPECT_EQ(days_from_date(calendar, c.date), c.days);
    EXPECT_TRUE(is_date(calendar, c.date));
    EXPECT_EQ(calendar_field(CalendarField::weekday, calendar, {c.days, 0}), c.weekday);
    EXPECT_EQ(day_of_year(calendar, c.days), c.dayofyear);
  }
}

TEST(Calendar, EveryDayFollowsTheOneBefore) {
  for (const char* name :
       {"standard", "proleptic_gregorian", "julian", "noleap", "all_leap", "360_day"}) {
    const Calendar calendar = *parse_calendar(name);
    Date before = date_from_days(calendar, -800001);
    for (std::int64_t days = -800000; days < 200000; ++days) {
      const Date date = date_from_days(calendar, days);
      ASSERT_EQ(days_from_date(calendar, date), days) << name;
      ASSERT_TRUE(is_date(calendar, date)) << name << " " << days;
      ASSERT_LT(std::tuple(before.year, before.month, before.day),
                std::tuple(date.year, date.month, date.day))
          << name << " " << days;
      before = date;
    }
  }
}

TEST(Calendar, DaysThatThereAreNot) {
  const auto is = [](const char* calendar, Date date) {
    return is_date(*parse_calendar(calendar), date);
  };
  EXPECT_FALSE(is("standard", {1582, 10, 5}));
  EXPECT_TRUE(is("standard", {1500, 2, 29}));
  EXPECT_FALSE(is("proleptic_gregorian", {1500, 2, 29}));
  EXPECT_TRUE(is("proleptic_gregorian", {1582, 10, 5}));
  EXPECT_FALSE(is("noleap", {2000, 2, 29}));
  EXPECT_TRUE(is("all_leap", {2001, 2, 29}));
  EXPECT_TRUE(is("360_day", {2001, 2, 30}));
  EXPECT_FALSE(is("360_day", {2001, 1, 31}));
  EXPECT_TRUE(is("julian", {1900, 2, 29}));
  EXPECT_FALSE(is("julian", {2000, 13, 1}));
  EXPECT_FALSE(is("julian", {2000, 1, 0}));
}

TEST(Calendar, NamesInAnyCase) {
  EXPECT_EQ(parse_calendar(""), Calendar::standard);
  EXPECT_EQ(parse_calendar("Gregorian"), Calendar::standard);
  EXPECT_EQ(parse_calendar("365_day"), Calendar::noleap);
  EXPECT_EQ(parse_calendar("NoLeap"), Calendar::noleap);
  EXPECT_EQ(parse_calendar("366_DAY"), Calendar::all_leap);
  EXPECT_EQ(parse_calendar("none"), std::nullopt);
}

TEST(Calendar, FarMomentsAreNoDates) {
  constexpr __int128 kFar = static_cast<__int128>(INT64_MAX) * INT64_MAX;
  EXPECT_EQ(moment_of(kFar), std::nullopt);
  EXPECT_EQ(moment_of(-kFar), std::nullopt);
  EXPECT_EQ(format_moment(Calendar::noleap, kFar), "NaT");
  EXPECT_EQ(format_moment(Calendar::noleap, std::nullopt), "NaT");
  for (const char* name :
       {"standard", "proleptic_gregorian", "julian", "noleap", "all_leap", "360_day"}) {
    const Calendar calendar = *parse_calendar(name);
    for (const std::int64_t days : {kFarthestDay, -kFarthestDay})
      EXPECT_EQ(days_from_date(calendar, date_from_days(calendar, days)), days) << name;
  }
}

TEST(Calendar, MomentsAreWrittenAsDates) {
  constexpr __int128 kDay = static_cast<__int128>(86400) * kNanosecondsPerSecond;
  EXPECT_EQ(format_moment(Calendar::days_360, 59 * kDay + 500'000'000), "1970-02-30T00:00:00.5");
  EXPECT_EQ(format_moment(Calendar::proleptic_gregorian, -1), "1969-12-31T23:59:59.999999999");
}

}  // namespace calendar_test
}  // namespace batchfs
