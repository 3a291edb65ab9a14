#include "engine/dataset/labels.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace labels_test {

struct DateCase {
  const char* text;
  std::int64_t first, last;  // pandas returns the last in microseconds; ours is 999 ns later
  int level;
};

// p = pandas.Period(text, freq); p.start_time.value, p.end_time.value + 999
const DateCase kDates[] = {
    {"2000", 946684800000000000, 978307199999999999, 0},
    {"2000-01", 946684800000000000, 949363199999999999, 1},
    {"2000-02", 949363200000000000, 951868799999999999, 1},
    {"2000-12", 975628800000000000, 978307199999999999, 1},
    {"2000-01-01", 946684800000000000, 946771199999999999, 2},
    {"2000-01-01T06", 946706400000000000, 946709999999999999, 3},
    {"2000-01-01 06:30", 946708200000000000, 946708259999999999, 4},
    {"1999-02-28", 920160000000000000, 920246399999999999, 2},
    {"1900-02", -2206310400000000000, -2203891200000000001, 1},
    {"2100-02", 4105123200000000000, 4107542399999999999, 1},
    {"1677-10", -9222508800000000000, -9219830400000000001, 1},
    {"2262-03", 9219744000000000000, 9222422399999999999, 1},
    // Seconds and below are one instant.
    {"2000-01-01T06:30:15", 946708215000000000, 946708215000000000, 5},
    {"2000-01-01T06:30:15Z", 946708215000000000, 946708215000000000, 5},
    {"2000-01-01T06:00:00.5", 946706400500000000, 946706400500000000, 5},
    {"2000-01-01t06:00:00.123456789", 946706400123456789, 946706400123456789, 5},
};

DataType time_type(const std::string& unit, std::int32_t multiplier = 1) {
  DataType type = make_type(Kind::datetime, 8);
  type.unit = unit;
  type.multiplier = multiplier;
  return type;
}

TEST(Labels, DatesAreRangesAsInPandas) {
  for (const DateCase& c : kDates) {
    SCOPED_TRACE(c.text);
    const auto range = parse_date(c.text);
    ASSERT_TRUE(range);
    EXPECT_EQ(static_cast<std::int64_t>(range->first), c.first);
    EXPECT_EQ(static_cast<std::int64_t>(range->last), c.last);
    EXPECT_EQ(range->level, c.level);
  }
}

TEST(Labels, YearsBeyondDatetime64AreDatesToo) {
  const auto range = parse_date("9999");
  ASSERT_TRUE(range);
  // (numpy.datetime64("9999-01-01") - numpy.datetime64("1970-01-01")).astype("m8[s]") ==
  // 253370764800
  EXPECT_EQ(static_cast<std::int64_t>(range->first / 1'000'000'000), 253370764800);
  EXPECT_TRUE(parse_date("0000"));
}

TEST(Labels, WhatIsNoDate) {
  for (const char* text : {"",
                           "1",
                           "200",
                           "20000",
                           "abcd",
                           "2000-",
                           "2000-1",
                           "2000-13",
                           "2000-00",
                           "2000-01-00",
                           "2000-02-30",
                           "1900-02-29",
                           "2000-01-32",
                           "2000/01/01",
                           "2000-01-01T",
                           "2000-01-01T24",
                           "2000-01-01T06:60",
                           "2000-01-01T06:00:60",
                           "2000-01-01T06:00:00.",
                           "2000-01-01T06:00:00.1234567890",
                           "2000-01-01T06:00:00.x",
                           "2000-01-01T06:00+01:00",
                           "Z",
                           "-200",
                           "+200",
                           " 2000",
                           "2000 ",
                           "20 0"})
    EXPECT_FALSE(parse_date(text)) << text;
}

// str(numpy.datetime64(count, unit)), without trailing zeros of the fraction
TEST(Labels, TimesAsText) {
  EXPECT_EQ(format_time(946708215000000000, time_type("ns")), "2000-01-01T06:30:15");
  EXPECT_EQ(format_time(-1, time_type("ns")), "1969-12-31T23:59:59.999999999");
  EXPECT_EQ(format_time(-1, time_type("s")), "1969-12-31T23:59:59");
  EXPECT_EQ(format_time(1500, time_type("ms")), "1970-01-01T00:00:01.5");
  EXPECT_EQ(format_time(1, time_type("us")), "1970-01-01T00:00:00.000001");
  EXPECT_EQ(format_time(INT64_MIN, time_type("ns")), "NaT");
  EXPECT_EQ(format_time(INT64_MAX, time_type("ns")), "2262-04-11T23:47:16.854775807");
  EXPECT_EQ(format_time(11016, time_type("D")), "2000-02-29T00:00:00");
  EXPECT_EQ(format_time(-1, time_type("W")), "1969-12-25T00:00:00");
  EXPECT_EQ(format_time(-1, time_type("M")), "1969-12-01T00:00:00");
  EXPECT_EQ(format_time(11, time_type("M", 3)), "1972-10-01T00:00:00");
  EXPECT_EQ(format_time(-1971, time_type("Y")), "-001-01-01T00:00:00");
  EXPECT_EQ(format_time(3, time_type("us", 25)), "1970-01-01T00:00:00.000075");
  EXPECT_EQ(format_time(7, time_type("ps")), "7");
  EXPECT_NE(format_time(INT64_MAX, time_type("Y", INT32_MAX)), "");  // does no harm
}

template <class T>
NdArray array(const DataType& type, const std::vector<T>& values) {
  NdArray result{
      type, {static_cast<std::int64_t>(values.size())}, Buffer(values.size() * sizeof(T))};
  std::memcpy(result.data.data(), values.data(), result.data.size());
  return result;
}

TEST(Labels, NumbersAsTextAndJson) {
  EXPECT_EQ(label_text(array<float>(float32(), {0.1f}), 0), "0.1");
  EXPECT_EQ(label_text(array<double>(float64(), {0.1, -2.5}), 1), "-2.5");
  EXPECT_EQ(label_json(array<double>(float64(), {std::nan("")}), 0), "NaN");
  EXPECT_EQ(label_json(array<float>(float32(), {-INFINITY}), 0), "-Infinity");
  EXPECT_EQ(label_json(array<std::int64_t>(make_type(Kind::signed_int, 8), {9007199254740993}), 0),
            9007199254740993);
  EXPECT_EQ(label_json(array<std::uint64_t>(make_type(Kind::unsigned_int, 8), {UINT64_MAX}), 0),
            UINT64_MAX);
  EXPECT_EQ(label_json(array<std::int8_t>(make_type(Kind::signed_int, 1), {-3}), 0), -3);
  EXPECT_EQ(label_json(array<std::uint8_t>(make_type(Kind::boolean, 1), {1}), 0), true);
  EXPECT_EQ(
      label_text(array<_Float16>(make_type(Kind::floating, 2), {static_cast<_Float16>(1.5)}), 0),
      "1.5");
  EXPECT_EQ(label_text(array<std::int64_t>(datetime_ns(), {0}), 0), "1970-01-01T00:00:00");
}

TEST(Labels, StringsLoseTheirPadding) {
  EXPECT_EQ(
      label_text(array<char>(make_type(Kind::bytes, 4), {'a', 'b', '\0', '\0', 'c', 'd', 'e', 'f'}),
                 0),
      "ab");
  EXPECT_EQ(
      label_text(array<char>(make_type(Kind::bytes, 4), {'a', 'b', '\0', '\0', 'c', 'd', 'e', 'f'}),
                 1),
      "cdef");
  EXPECT_EQ(label_text(array<char>(make_type(Kind::bytes, 2), {'\0', '\0'}), 0), "");
  // "é€𝄞".encode("utf-8")
  EXPECT_EQ(label_text(array<char32_t>(make_type(Kind::unicode, 16), {U'é', U'€', U'𝄞', U'\0'}), 0),
            "\xc3\xa9\xe2\x82\xac\xf0\x9d\x84\x9e");
}

}  // namespace labels_test
}  // namespace batchfs
