#include "tools/inspect/coordinate_range.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace coordinate_range_test {

std::string text_of(const MemoryData& data, const std::string& name,
                    const std::string& units = "") {
  const auto dataset = data.dataset();
  const auto range = coordinate_range(dataset->variable(name));
  return range ? range_text(*range, units) : "none";
}

TEST(CoordinateRange, HasBothEndsAndTheStepBetweenNeighbours) {
  MemoryData data;
  data.index<double>("lat", "<f8", {90, 60, 30})
      .index<float>("x", "<f4", {0, 0.1F, 0.2F, 0.3F})
      .index<std::int64_t>("level", "<i8", {1000, 850, 500})
      .index<double>("one", "<f8", {7.5});
  EXPECT_EQ(text_of(data, "lat", "degrees_north"), "90 to 30 degrees_north, step -30");
  EXPECT_EQ(text_of(data, "x"), "0 to 0.3, step 0.1");
  EXPECT_EQ(text_of(data, "level", "hPa"), "1000 to 500 hPa");
  EXPECT_EQ(text_of(data, "one"), "7.5");
}

TEST(CoordinateRange, TimesAreDates) {
  MemoryData data;
  data.add<std::int64_t>("time", "<i8", {"time"}, {3}, {0, 6, 12},
                         {{"units", "hours since 2000-01-01"}})
      .add<std::int64_t>("far", "<i8", {"far"}, {2}, {0, 1}, {{"units", "days since 3000-01-01"}});
  EXPECT_EQ(text_of(data, "time"), "2000-01-01 to 2000-01-01T12:00, step 6 h");
  // datetime64[ns] does not hold these: they are numbers, shown as dates.
  EXPECT_EQ(text_of(data, "far", "days since 3000-01-01"),
            "3000-01-01 to 3000-01-02 standard, step 1 d");
}

TEST(CoordinateRange, TimesOfOtherCalendarsAreDatesOfTheCalendar) {
  MemoryData data;
  const auto add = [&](const std::string& name, const std::string& calendar,
                       const std::vector<std::int64_t>& days) {
    data.add<std::int64_t>(name, "<i8", {name}, {std::ssize(days)}, days,
                           {{"units", "days since 2000-02-27"}, {"calendar", calendar}});
  };
  add("noleap", "noleap", {0, 1, 2});
  add("days", "360_day", {0, 3, 6});
  add("jitter", "julian", {0, 1, 3});
  EXPECT_EQ(text_of(data, "noleap"), "2000-02-27 to 2000-03-01 noleap, step 1 d");
  EXPECT_EQ(text_of(data, "days"), "2000-02-27 to 2000-03-03 360_day, step 3 d");
  EXPECT_EQ(text_of(data, "jitter"), "2000-02-27 to 2000-03-01 julian");
}

TEST(CoordinateRange, BothEndsHaveOneStyle) {
  MemoryData data;
  data.index<double>("x", "<f8", {3e5, 3.1e5})
      .index<double>("y", "<f8", {5e6, 4999110})
      .index<std::int64_t>("n", "<i8", {0, 1'000'000});
  EXPECT_EQ(text_of(data, "x"), "300000 to 310000, step 10000");
  EXPECT_EQ(text_of(data, "y"), "5000000 to 4999110, step -890");
  EXPECT_EQ(text_of(data, "n"), "0 to 1000000, step 1000000");
}

TEST(CoordinateRange, WithoutOrWithTooManyElements) {
  MemoryData data;
  data.declare("long", "<f8", {"long"}, {std::int64_t{1} << 40}, {1 << 20}, Json::object(), 3.0)
      .declare("coarse", "<f8", {"coarse"}, {1 << 28}, {1 << 28}, Json::object(), 3.0)
      .declare("empty", "<f8", {"empty"}, {0}, {1});
  EXPECT_EQ(text_of(data, "long"), "nan");     // both ends are missing values
  EXPECT_EQ(text_of(data, "coarse"), "none");  // 2 GB for one value
  EXPECT_EQ(text_of(data, "empty"), "none");
}

}  // namespace coordinate_range_test
}  // namespace batchfs
