#include "engine/view/samples/time_steps.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace time_steps_test {

using testing::HasSubstr;

/// Times in hours since 2000-01-01, or as days of `units`.
struct Times {
  explicit Times(const std::vector<std::int32_t>& counts,
                 const std::string& units = "hours since 2000-01-01")
      : dataset(MemoryData().index("time", "<i4", counts, {{"units", units}}).dataset()),
        axis(*dataset, "time", Positions::range(0, static_cast<std::int64_t>(counts.size())), "p") {
  }
  std::string common() const {
    const auto step = axis.common_step();
    return step ? duration_text(*step) : "none";
  }
  std::string regular() const {
    const auto step = axis.regular_step();
    return step ? duration_text(*step) : "none";
  }
  std::shared_ptr<const Dataset> dataset;
  TimeSteps axis;
};

const char* const kDays = "days since 2001-01-01";
/// First days of the months of 2001.
const std::vector<std::int32_t> kMonths = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};

Duration duration(const char* text) { return *parse_duration(text); }

TEST(TimeSteps, FindsTheStep) {
  EXPECT_EQ(Times({0, 6, 12, 18}).regular(), "6h");
  EXPECT_EQ(Times({18, 12, 6, 0}).regular(), "-6h");
  EXPECT_EQ(Times({0, 6, 12, 24, 30}).regular(), "none");
  EXPECT_EQ(Times({0, 6, 12, 24, 30}).common(), "6h");
  EXPECT_EQ(Times({0, 6, 13, 24, 30}).common(), "none");
  EXPECT_EQ(Times({0}).common(), "none");
  EXPECT_EQ(Times({5, 5, 5}).common(), "none");
  EXPECT_EQ(Times(kMonths, kDays).regular(), "1mo");
  EXPECT_EQ(Times({0, 365, 730, 1095, 1461}, kDays).regular(), "1y");
  EXPECT_EQ(Times({0, 31, 59, 120, 151, 181}, kDays).common(), "1mo");  // without April
  EXPECT_EQ(Times({0, 31, 59, 120, 151, 181}, kDays).regular(), "none");
  EXPECT_EQ(Times({0, 30, 60, 90}, kDays).regular(), "30d");
  EXPECT_EQ(Times({181, 212, 243}, kDays).regular(), "1mo");  // July and August have 31 days
}

TEST(TimeSteps, MonthsFollowByTheirBeginEndAndMiddle) {
  // 31 January, 28 February, 31 March, 30 April 2001.
  const Times ends({30, 58, 89, 119}, kDays);
  EXPECT_EQ(ends.regular(), "1mo");
  // The middles of January, February, March, in hours since 2001.
  const Times middles({372, 31 * 24 + 336, 59 * 24 + 372}, "hours since 2001-01-01");
  EXPECT_EQ(middles.regular(), "1mo");
  // The 30th, and the last day of February, as pandas adds a month; but not back to the 30th.
  const Times thirtieth({29, 58, 86}, kDays);
  EXPECT_TRUE(thirtieth.axis.follows(0, 1, duration("1mo")));
  EXPECT_TRUE(thirtieth.axis.follows(1, 2, duration("1mo")));
  EXPECT_FALSE(thirtieth.axis.follows(0, 2, duration("2mo")));
}

TEST(TimeSteps, FindsLabelsByDuration) {
  const Times times({0, 6, 12, 24, 30});
  EXPECT_EQ(times.axis.find(0, duration("6h")), 1);
  EXPECT_EQ(times.axis.find(1, duration("-6h")), 0);
  EXPECT_EQ(times.axis.find(2, duration("12h")), 3);
  EXPECT_EQ(times.axis.find(2, duration("12h"), 3), 3);
  EXPECT_EQ(times.axis.find(2, duration("12h"), 4), 3);
  EXPECT_EQ(times.axis.find(2, duration("12h"), 99), 3);
  EXPECT_EQ(times.axis.find(2, duration("6h")), -1);
  EXPECT_EQ(times.axis.find(0, duration("-6h")), -1);
  EXPECT_EQ(times.axis.find(0, duration("0h")), 0);
  const Times down({30, 24, 12, 6, 0});
  EXPECT_EQ(down.axis.find(0, duration("-6h")), 1);
  EXPECT_EQ(down.axis.find(4, duration("1d")), 1);
  const Times months(kMonths, kDays);
  EXPECT_EQ(months.axis.find(3, duration("-2mo")), 1);
  EXPECT_EQ(months.axis.find(3, duration("9mo")), -1);
  EXPECT_EQ(Times({30, 58}, kDays).axis.find(0, duration("1mo")), 1);       // the last days
  EXPECT_EQ(Times({58, 86, 119}, kDays).axis.find(0, duration("1mo")), 1);  // the same day
}

TEST(TimeSteps, AMonthAfterADayOfDailyLabelsIsThatDay) {
  // The last of February, the 30th and 31st of March: the 28th of March is missing.
  const Times days({58, 88, 89}, kDays);
  EXPECT_EQ(days.axis.find(0, duration("1mo")), -1);
  EXPECT_FALSE(days.axis.follows(0, 2, duration("1mo")));
  const __int128 origin = days.axis.nanoseconds(0);
  EXPECT_FALSE(days.axis.is_multiple_from(2, origin, duration("1mo")));
  EXPECT_EQ(Times({28, 29, 30, 58}, kDays).axis.find(2, duration("1mo")), 3);  // of 31 January
}

TEST(TimeSteps, KnowsWhatIsOutOfOrder) {
  EXPECT_EQ(Times({0, 6, 12}).axis.first_unordered(), std::nullopt);
  EXPECT_EQ(Times({12, 6, 0}).axis.first_unordered(), std::nullopt);
  EXPECT_EQ(Times({0, 6, 6, 12}).axis.first_unordered(), 2);
  EXPECT_EQ(Times({0, 12, 6, 18}).axis.first_unordered(), 2);
}

TEST(TimeSteps, LabelsAreDates) {
  const Times times({0, 59 * 24 + 6, -1}, "hours since 2000-01-01");
  EXPECT_EQ(times.axis.label(1), "2000-02-29T06:00:00");
  EXPECT_EQ(times.axis.label(2), "1999-12-31T23:00:00");
}

TEST(TimeSteps, TakesStoredTimesOfAnyUnit) {
  for (const char* type : {"<M8[ns]", "<M8[us]", "<M8[ms]", "<M8[s]", "<M8[m]", "<M8[h]", "<M8[D]",
                           "<M8[25us]", "<M8[M]"}) {
    const auto dataset =
        MemoryData().index<std::int64_t>("time", type, {0, 1, 2, INT64_MIN, 4}).dataset();
    const TimeSteps axis(*dataset, "time", Positions::range(0, 5), "p");
    EXPECT_TRUE(axis.common_step().has_value() == false || !axis.is_missing(0)) << type;
    EXPECT_TRUE(axis.is_missing(3)) << type;
    EXPECT_FALSE(axis.follows(2, 3, duration("1h"))) << type;
    EXPECT_FALSE(axis.follows(3, 4, duration("1h"))) << type;
    EXPECT_EQ(axis.first_unordered(), 3) << type;
    EXPECT_TRUE(axis.label(0).starts_with("1970-01-01")) << type;
  }
  const auto hours = MemoryData().index<std::int64_t>("time", "<M8[h]", {0, 6, 12}).dataset();
  EXPECT_EQ(TimeSteps(*hours, "time", Positions::range(0, 3), "p").regular_step(), duration("6h"));
  const auto months = MemoryData().index<std::int64_t>("time", "<M8[M]", {0, 1, 2, 3}).dataset();
  EXPECT_EQ(TimeSteps(*months, "time", Positions::range(0, 4), "p").regular_step(),
            duration("1mo"));
}

TEST(TimeSteps, TimesAtTheEndsOfTheirTypeDoNotOverflow) {
  const auto dataset =
      MemoryData()
          .index<std::int64_t>("time", "<M8[s]", {INT64_MIN + 1, -1, 0, INT64_MAX - 1, INT64_MAX})
          .dataset();
  const TimeSteps axis(*dataset, "time", Positions::range(0, 5), "p");
  for (const char* text : {"1s", "-1s", "1mo", "-1mo", "100000y", "-100000y", "290y"})
    for (std::int64_t i = 0; i < 5; ++i) {
      axis.find(i, duration(text));
      for (std::int64_t j = 0; j < 5; ++j) axis.follows(i, j, duration(text));
    }
  EXPECT_EQ(axis.find(3, duration("1s")), 4);
  EXPECT_EQ(axis.find(4, duration("1s")), -1);
  EXPECT_EQ(axis.common_step(), std::nullopt);
}

TEST(TimeSteps, CalendarsHaveTheirOwnMonths) {
  struct Case {
    const char *calendar, *units;
    std::vector<std::int32_t> months;  // first days of months
    const char* first;
  };
  for (const Case& one :
       {Case{"noleap", "days since 2000-02-01", {0, 28, 59}, "2000-02-01T00:00:00"},
        Case{"all_leap", "days since 2001-02-01", {0, 29, 60}, "2001-02-01T00:00:00"},
        Case{"360_day", "days since 2001-01-01", {0, 30, 60}, "2001-01-01T00:00:00"},
        Case{"julian", "days since 1900-02-01", {0, 29, 60}, "1900-02-01T00:00:00"},
        Case{"standard", "days since 0900-02-01", {0, 29, 60}, "0900-02-01T00:00:00"}}) {
    const auto dataset =
        MemoryData()
            .index("time", "<i4", one.months, {{"units", one.units}, {"calendar", one.calendar}})
            .dataset();
    ASSERT_TRUE(has_times(*dataset, "time")) << one.calendar;
    const TimeSteps axis(*dataset, "time", Positions::range(0, 3), "p");
    EXPECT_EQ(axis.label(0), one.first);
    EXPECT_TRUE(axis.follows(0, 1, duration("1mo"))) << one.calendar;
    EXPECT_TRUE(axis.follows(1, 2, duration("1mo"))) << one.calendar;
    EXPECT_EQ(axis.find(0, duration("2mo")), 2) << one.calendar;
    EXPECT_EQ(axis.find(0, Duration{.nanoseconds = one.months[1] * INT64_C(86400'000'000'000)}), 1);
    EXPECT_EQ(axis.find(0, duration("27d")), -1) << one.calendar;
  }
}

TEST(TimeSteps, OtherCoordinatesAreRefused) {
  const auto dataset =
      MemoryData().index<double>("x", "<f8", {1, 2}).declare("v", "<f4", {"y"}, {3}, {3}).dataset();
  EXPECT_FALSE(has_times(*dataset, "x"));
  EXPECT_FALSE(has_times(*dataset, "y"));
  EXPECT_THAT(error_of([&] {
                TimeSteps(*dataset, "x", Positions::range(0, 2), "samples.spacing.x");
              }).why(),
              HasSubstr("samples.spacing.x: 'x' has no coordinate of times: it is float64"));
}

}  // namespace time_steps_test
}  // namespace batchfs
