#include "engine/dataset/cf_time.h"

#include <limits>

#include <gtest/gtest.h>

namespace batchfs {
namespace cf_time_test {

constexpr std::int64_t kSecond = 1'000'000'000;

struct Case {
  const char* units;
  const char* calendar;
  std::int64_t step_ns, seconds, nanoseconds;
};

// seconds: (cftime.num2date(0, units, calendar or "standard") as a real datetime) - 1970-01-01,
// i.e.
//   cftime.date2num(cftime.num2date(0, units, calendar), "seconds since 1970-01-01", calendar)
const Case kCases[] = {
    {"hours since 1900-01-01", "", 3600 * kSecond, -2208988800, 0},
    {"hours since 1900-01-01 00:00:0.0", "standard", 3600 * kSecond, -2208988800, 0},
    {"Hours Since 1900-1-1", "gregorian", 3600 * kSecond, -2208988800, 0},
    {"days since 0001-01-01", "standard", 86400 * kSecond, -62135769600, 0},
    {"days since 0001-01-01", "proleptic_gregorian", 86400 * kSecond, -62135596800, 0},
    {"days since 1582-10-15", "standard", 86400 * kSecond, -12219292800, 0},
    {"days since 1582-10-04", "standard", 86400 * kSecond, -12219379200, 0},
    {"days since 1582-10-04", "proleptic_gregorian", 86400 * kSecond, -12220243200, 0},
    {"seconds since 1970-01-01T00:00:00Z", "", kSecond, 0, 0},
    {"seconds since 1970-01-01 00:00:00 UTC", "", kSecond, 0, 0},
    {"minutes since 2000-02-29 12:30:15.25", "", 60 * kSecond, 951827415, 250'000'000},
    {"minutes since 2000-01-01 00:00 +05:30", "", 60 * kSecond, 946665000, 0},
    {"minutes since 2000-01-01 00:00:00 -0800", "", 60 * kSecond, 946713600, 0},
    {"milliseconds since 2000-01-01", "", 1'000'000, 946684800, 0},
    {"microseconds since 2000-01-01", "", 1'000, 946684800, 0},
    {"days since 2000", "", 86400 * kSecond, 946684800, 0},
    {"d since 2000-01-01", "", 86400 * kSecond, 946684800, 0},
    {"hr since 2000-01-01 06", "", 3600 * kSecond, 946706400, 0},
    {"days since 20000131", "", 86400 * kSecond, 949276800, 0},
    {"days since 2000/01/31", "", 86400 * kSecond, 949276800, 0},
    {"days since 2000-01-01 00:00:00 -6:00", "", 86400 * kSecond, 946706400, 0},
    {"days since -4713-01-01 12:00", "julian", 86400 * kSecond, -210867883200, 0},
    {"hr since 2000-01-01T06Z", "", 3600 * kSecond, 946706400, 0},
    {"hr since 2000-01-01 06 +01:00", "", 3600 * kSecond, 946702800, 0},
    {"hr since 20000101 06:00 UTC", "", 3600 * kSecond, 946706400, 0},
    {"hr since 2000-01-01 6:00 utc", "", 3600 * kSecond, 946706400, 0},
    {"days since 2000-01-31 +00:00", "", 86400 * kSecond, 949276800, 0},
    {"days since 2000-01-31 00.00.00", "", 86400 * kSecond, 949276800, 0},
    {"days since 2000-01-31T00:00:00.0 00:00", "", 86400 * kSecond, 949276800, 0},
    {"days since 2000-01-31 0 0", "", 86400 * kSecond, 949276800, 0},
    // pandas.Timestamp of the date.
    {"days since Jan 31, 2000", "", 86400 * kSecond, 949276800, 0},
    {"days since 31 January 2000", "standard", 86400 * kSecond, 949276800, 0},
    {"days since 31-jan-2000", "gregorian", 86400 * kSecond, 949276800, 0},
    {"days since 2000 JAN 31", "proleptic_gregorian", 86400 * kSecond, 949276800, 0},
    {"hr since 2000-Jan-01 06:00", "", 3600 * kSecond, 946706400, 0},
    {"days since 30 Sept 2000", "", 86400 * kSecond, 970272000, 0},
};

class TimeUnits : public testing::TestWithParam<Case> {};

TEST_P(TimeUnits, AreReadAsCftimeReadsThem) {
  const Case& c = GetParam();
  SCOPED_TRACE(c.units);
  const auto reference = parse_time_units(c.units, c.calendar);
  ASSERT_TRUE(reference);
  EXPECT_EQ(reference->step_ns, c.step_ns);
  EXPECT_EQ(reference->seconds, c.seconds);
  EXPECT_EQ(reference->nanoseconds, c.nanoseconds);
  EXPECT_TRUE(is_time_units(c.units));
}
INSTANTIATE_TEST_SUITE_P(Reference, TimeUnits, testing::ValuesIn(kCases));

// cftime.date2num(cftime.num2date(0, units, calendar), "seconds since 1970-01-01", calendar)
TEST(TimeUnits, OfOtherCalendarsCountInThem) {
  const struct {
    const char *units, *calendar;
    std::int64_t seconds;
  } cases[] = {{"days since 2000-01-01", "noleap", 946080000},
               {"days since 2000-01-01", "365_day", 946080000},
               {"days since 2000-02-30", "360_day", 938217600},
               {"days since 1850-03-01", "julian", -3781814400},
               {"days since 1999-02-29", "all_leap", 922147200},
               {"days since 2000-01-01", "366_day", 948672000}};
  for (const auto& c : cases) {
    const auto reference = parse_time_units(c.units, c.calendar);
    ASSERT_TRUE(reference) << c.calendar;
    EXPECT_EQ(reference->seconds, c.seconds) << c.units << " " << c.calendar;
  }
  EXPECT_FALSE(parse_time_units("days since 2000-01-01", "nonsense"));
  EXPECT_FALSE(parse_time_units("days since 2000-02-31", "360_day"));
  EXPECT_FALSE(parse_time_units("months since 2000-01-01", "noleap"));
  EXPECT_EQ(parse_time_units("months since 2000-01-01", "360_day")->step_ns, 30 * 86400 * kSecond);
}

TEST(TimeUnits, WhatIsNoTimeIsNone) {
  for (const char* units : {"",
                            "K",
                            "days",
                            "since 2000-01-01",
                            " since 2000-01-01",
                            "months since 2000-01-01",
                            "years since 2000",
                            "days since",
                            "days since ",
                            "days since then",
                            "days since 2000-13-01",
                            "days since 2000-00-01",
                            "days since 2000-01-32",
                            "days since 2000-02-30",
                            "days since 2001-02-29",
                            "days since 2000-01-01 25:00",
                            "days since 2000-01-01 00:60",
                            "days since 2000-01-01 00:00:61",
                            "days since 2000-01-01 00:-5",
                            "days since 2000-01-01 00:00:-5",
                            "days since 2000-01-01 +99:00",
                            "days since 2000-01-01 +-5:00",
                            "days since 2000-01-01 +05:99",
                            "days since 2000-01-01 noon",
                            "days since 2000-012",
                            "days since 2000-01-011",
                            "days since 2000-01-01 012",
                            "days since 2000-01-01 00.00.01",
                            "days since 2000-01-01 6",
                            "days since 2000-01 06",
                            "days since 2000 06",
                            "days since 20000101 0",
                            "days since 20000101 00.00.00",
                            "days since 1600-01-01 06",
                            "days since 2000-01-01 06 utc",
                            "days since 2000-01-01 6Z",
                            "days since 20000101 06:00 utc",
                            "days since 20000101 UTC",
                            "days since 2000-01-01 +5:30",
                            "days since 2000-01-01+14:00",
                            "days since 2000-01-01 06:00 +24:00",
                            "days since 2000-01-01 06:00:00 00:00",
                            "days since 2000-01-01 .0",
                            "days since Feb 30, 2000",
                            "days since Jan 0, 2000",
                            "days since Jan 1, 1600",
                            "days since Jan 1, 99",
                            "days since Jan 1",
                            "days since January 2000",
                            "days since Janu 1, 2000",
                            "days since Jan Feb 2000",
                            "days since 1 2 Jan",
                            "days since 1999 2000 Jan",
                            "days since Jan 1999 2000",
                            "days since Jan 1, 20000",
                            "days since Jan 1, 2000 noon",
                            "days since 01/02/2000",
                            "days since 20001301",
                            "days since 2000-01-01 00:00:00 +530",
                            "days since 999999999999999999999-01-01",
                            "days since 100000000-01-01",
                            "days since 2000-01-01 00:00:00 +",
                            "days since 2000-01-01 00:00 +05:"}) {
    EXPECT_FALSE(parse_time_units(units, "")) << units;
    EXPECT_FALSE(is_time_units(units)) << units;
  }
}

TEST(TimeUnits, TheYear0IsOneOfCalendarsThatHaveIt) {
  EXPECT_FALSE(parse_time_units("days since 0000-01-01", ""));
  EXPECT_FALSE(parse_time_units("days since 0000-01-01", "julian"));
  EXPECT_EQ(parse_time_units("days since 0000-01-01", "noleap")->seconds, -1970LL * 365 * 86400);
  EXPECT_EQ(parse_time_units("days since -1-01-01", "julian")->seconds + 366 * 86400,
            parse_time_units("days since 1-01-01", "julian")->seconds);
}

TEST(TimeUnits, LongFractionsAreCutNotOverflown) {
  const auto reference = parse_time_units(
      "seconds since 1970-01-01 00:00:00.1234567890123456789012345678901234567890", "");
  ASSERT_TRUE(reference);
  EXPECT_EQ(reference->nanoseconds, 123456789);
}

TEST(TimeUnits, TimesThatXarrayLeavesToCftime) {
  for (const char* units :
       {"days since 0001-01-01", "days since 1677-09-21", "days since 2262-04-12",
        "hr since 2000-01-01", "s since 2000-01-01", "msecs since 2000-01-01"})
    EXPECT_TRUE(parse_time_units(units, "standard")->is_for_cftime) << units;
  for (const char* units :
       {"days since 1677-09-22", "DAY since 2262-04-11", "nanoseconds since 1970-01-01"})
    EXPECT_FALSE(parse_time_units(units, "standard")->is_for_cftime) << units;
}

TEST(TimeUnits, CountsOfCftimeAreWholeMicroseconds) {
  const auto ns = [](long double counts, std::int64_t step) {
    return static_cast<std::int64_t>(*cftime_nanoseconds(counts, step));
  };
  constexpr std::int64_t kMillisecond = 1'000'000;
  // Halves go to the even neighbour.
  EXPECT_EQ(ns(0.0005L, kMillisecond), 0);
  EXPECT_EQ(ns(0.0015L, kMillisecond), 2000);
  EXPECT_EQ(ns(-0.0015L, kMillisecond), -2000);
  // Next to a whole second, in units of seconds and more.
  EXPECT_EQ(ns(1.0000007L, kSecond), kSecond);
  EXPECT_EQ(ns(1.9999993L, kSecond), 2 * kSecond);
  EXPECT_EQ(ns(-1.0000007L, kSecond), -kSecond);
  EXPECT_EQ(ns(1000.0007L, kMillisecond), kSecond + 1000);
  // Nanoseconds, which cftime does not have.
  EXPECT_EQ(ns(7, 1), 7);
  EXPECT_FALSE(cftime_nanoseconds(std::numeric_limits<long double>::infinity(), kSecond));
  EXPECT_FALSE(cftime_nanoseconds(std::numeric_limits<long double>::quiet_NaN(), kSecond));
  EXPECT_FALSE(cftime_nanoseconds(1e30L, kSecond));
}

TEST(TimeUnits, NanosecondsInUnits) {
  EXPECT_EQ(time_unit_nanoseconds("days"), 86400 * kSecond);
  EXPECT_EQ(time_unit_nanoseconds("Hour"), 3600 * kSecond);
  EXPECT_EQ(time_unit_nanoseconds("s"), kSecond);
  EXPECT_EQ(time_unit_nanoseconds("ms"), 1'000'000);
  EXPECT_EQ(time_unit_nanoseconds("nanoseconds"), 1);
  EXPECT_FALSE(time_unit_nanoseconds("month"));
  EXPECT_FALSE(time_unit_nanoseconds("m"));
  EXPECT_FALSE(time_unit_nanoseconds(""));
  EXPECT_EQ(resolution_nanoseconds("us"), 1000);
  EXPECT_FALSE(resolution_nanoseconds("D"));
}

}  // namespace cf_time_test
}  // namespace batchfs
