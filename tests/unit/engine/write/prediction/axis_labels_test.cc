#include "engine/write/prediction/axis_labels.h"

#include <cstring>
#include <limits>

#include <gtest/gtest.h>

namespace batchfs {
namespace axis_labels_test {

constexpr std::int64_t kNat = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kHour = 3'600'000'000'000;
constexpr std::int64_t k2020 = 1577836800'000'000'000;  // numpy.datetime64("2020-01-01", "ns")

template <class T>
AxisLabels labels_of(const DataType& type, const std::vector<T>& values) {
  AxisLabels labels{type, std::vector<std::byte>(values.size() * sizeof(T))};
  std::memcpy(labels.values.data(), values.data(), labels.values.size());
  return labels;
}

std::vector<std::int64_t> counts_of(const CoordinateLabels& stored) {
  std::vector<std::int64_t> counts(stored.values.size() / 8);
  std::memcpy(counts.data(), stored.values.data(), stored.values.size());
  return counts;
}

TEST(AxisLabels, TimesCountFromTheFirstInTheLargestUnit) {
  AxisLabels labels = labels_of<std::int64_t>(
      datetime_ns(), {k2020 + 12 * kHour, k2020 + 6 * kHour, k2020 + 24 * kHour});
  labels.attributes["long_name"] = "time";
  const CoordinateLabels stored = labels.stored();
  EXPECT_EQ(counts_of(stored), (std::vector<std::int64_t>{6, 0, 18}));
  EXPECT_EQ(stored.attributes, Json::parse(R"({"long_name": "time",
    "units": "hours since 2020-01-01 06:00:00", "calendar": "proleptic_gregorian"})"));
}

TEST(AxisLabels, FractionsOfASecondCountFromTheSecondBefore) {
  const CoordinateLabels stored =
      labels_of<std::int64_t>(datetime_ns(), {-500'000'000, 500'000'000}).stored();
  EXPECT_EQ(counts_of(stored), (std::vector<std::int64_t>{500, 1500}));
  EXPECT_EQ(stored.attributes["units"], "milliseconds since 1969-12-31 23:59:59");
}

TEST(AxisLabels, LabelsThatAreNoTimesAreMasked) {
  const CoordinateLabels stored =
      labels_of<std::int64_t>(datetime_ns(), {k2020 + 24 * kHour, kNat, k2020}).stored();
  EXPECT_EQ(counts_of(stored), (std::vector<std::int64_t>{1, kNat, 0}));
  EXPECT_EQ(stored.attributes["units"], "days since 2020-01-01 00:00:00");
  EXPECT_EQ(stored.attributes["_FillValue"], kNat);
  EXPECT_EQ(counts_of(labels_of<std::int64_t>(datetime_ns(), {kNat}).stored()),
            (std::vector<std::int64_t>{kNat}));
}

TEST(AxisLabels, DurationsAreNumbersOfTheirUnit) {
  DataType type = make_type(Kind::timedelta, 8);
  type.unit = "ns";
  const CoordinateLabels stored = labels_of<std::int64_t>(type, {0, 6 * kHour, -kHour}).stored();
  EXPECT_EQ(counts_of(stored), (std::vector<std::int64_t>{0, 6, -1}));
  EXPECT_EQ(stored.attributes, Json::parse(R"({"units": "hours", "dtype": "timedelta64[ns]"})"));
}

TEST(AxisLabels, TimesOfOtherUnitsAreTimes) {
  DataType days = make_type(Kind::datetime, 8);
  days.unit = "D";
  EXPECT_EQ(labels_of<std::int64_t>(days, {18262, 18263}).stored().attributes["units"],
            "days since 2020-01-01 00:00:00");
  EXPECT_THROW(labels_of<std::int64_t>(days, {1'000'000'000}).stored(), Error);
}

TEST(AxisLabels, CharactersBecomeTexts) {
  DataType bytes = make_type(Kind::bytes, 4);
  const AxisLabels names = labels_of<char>(bytes, {'a', 'b', 0, 0, '\xc3', '\xa9', 'x', '\xff'});
  EXPECT_EQ(names.stored().type.kind, Kind::variable_string);
  EXPECT_EQ(names.stored().strings, (std::vector<std::string>{"ab", "\u00e9x\ufffd"}));
  const AxisLabels wide =
      labels_of<char32_t>(make_type(Kind::unicode, 8), {U'\u00e9', 0, U'a', U'b'});
  EXPECT_EQ(wide.stored().strings, (std::vector<std::string>{"\u00e9", "ab"}));
}

TEST(AxisLabels, NumbersStayAndPositionsArePicked) {
  const AxisLabels levels = labels_of<float>(float32(), {1000, 850, 500});
  const std::vector<std::int64_t> positions{2, 0};
  const AxisLabels picked = levels.at(positions);
  EXPECT_EQ(picked.size(), 2);
  const CoordinateLabels stored = picked.stored();
  EXPECT_EQ(stored.type, float32());
  float values[2];
  std::memcpy(values, stored.values.data(), sizeof values);
  EXPECT_EQ(values[0], 500);
  EXPECT_EQ(values[1], 1000);
}

}  // namespace axis_labels_test
}  // namespace batchfs
