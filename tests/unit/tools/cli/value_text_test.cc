// The texts are numpy's: str(numpy.datetime64(...)), repr(float) and so on.

#include "tools/cli/value_text.h"

#include <bit>
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "engine/base/json.h"

namespace batchfs {
namespace value_text_test {

template <class T>
std::string text(const DataType& type, const T& value, TextStyle style = TextStyle::people) {
  std::byte element[64] = {};
  static_assert(sizeof value <= sizeof element);
  std::memcpy(element, &value, sizeof value);
  std::string out;
  append_value(out, type, element, style);
  return out;
}
template <class T>
std::string json(const DataType& type, const T& value) {
  return text(type, value, TextStyle::json);
}

DataType time_type(Kind kind, const std::string& unit, std::int32_t multiplier = 1) {
  DataType type = make_type(kind, 8);
  type.unit = unit;
  type.multiplier = multiplier;
  return type;
}
std::string date(const std::string& unit, std::int64_t count, std::int32_t multiplier = 1) {
  return text(time_type(Kind::datetime, unit, multiplier), count);
}

TEST(ValueText, Integers) {
  EXPECT_EQ(text(make_type(Kind::signed_int, 1), std::int8_t{-128}), "-128");
  EXPECT_EQ(text(make_type(Kind::unsigned_int, 1), std::uint8_t{255}), "255");
  EXPECT_EQ(text(make_type(Kind::signed_int, 2), std::int16_t{-2}), "-2");
  EXPECT_EQ(text(make_type(Kind::unsigned_int, 4), UINT32_MAX), "4294967295");
  EXPECT_EQ(text(make_type(Kind::signed_int, 8), INT64_MIN), "-9223372036854775808");
  EXPECT_EQ(text(make_type(Kind::unsigned_int, 8), UINT64_MAX), "18446744073709551615");
  EXPECT_EQ(text(make_type(Kind::boolean, 1), std::uint8_t{1}), "True");
  EXPECT_EQ(json(make_type(Kind::boolean, 1), std::uint8_t{0}), "false");
}

TEST(ValueText, FloatsAreShortAndReadBack) {
  const DataType single = make_type(Kind::floating, 4), full = make_type(Kind::floating, 8),
                 half = make_type(Kind::floating, 2);
  EXPECT_EQ(text(single, 0.1f), "0.1");
  EXPECT_EQ(text(single, 1.0f), "1.0") << "recognisable as a float";
  EXPECT_EQ(text(full, double{0.1f}), "0.10000000149011612");
  EXPECT_EQ(text(full, -0.0), "-0.0");
  EXPECT_EQ(text(full, 5e-324), "5e-324");
  EXPECT_EQ(text(half, std::uint16_t{0x3c00}), "1.0");
  EXPECT_EQ(text(half, std::uint16_t{0x7bff}), "65504.0");
  EXPECT_EQ(text(half, std::uint16_t{0x0001}), "5.9604645e-08");
  EXPECT_EQ(text(half, std::uint16_t{0xfc00}), "-inf");
  EXPECT_EQ(text(full, std::nan("")), "nan");
  EXPECT_EQ(json(full, std::nan("")), "null");
  EXPECT_EQ(json(full, double{INFINITY}), "null");
  for (const double value : {1.7976931348623157e308, 3.141592653589793, 1e22, 1e23, 123456789.0})
    EXPECT_EQ(std::strtod(text(full, value).c_str(), nullptr), value);
}

TEST(ValueText, ComplexNumbers) {
  const float value[] = {1.5f, -2};
  EXPECT_EQ(json(make_type(Kind::complex, 8), value), "[1.5, -2.0]");
  EXPECT_EQ(text(make_type(Kind::complex, 8), value), "(1.5 + -2.0j)");
}

TEST(ValueText, DatesToThePrecisionOfTheirUnit) {
  EXPECT_EQ(date("Y", 30), "2000");
  EXPECT_EQ(date("M", 361), "2000-02");
  EXPECT_EQ(date("M", -1), "1969-12");
  EXPECT_EQ(date("W", 1), "1970-01-08");
  EXPECT_EQ(date("D", 11016), "2000-02-29");
  EXPECT_EQ(date("D", -1), "1969-12-31");
  EXPECT_EQ(date("h", 25), "1970-01-02T01");
  EXPECT_EQ(date("m", 61), "1970-01-01T01:01");
  EXPECT_EQ(date("s", 951782400), "2000-02-29T00:00:00");
  EXPECT_EQ(date("ms", 951782400500), "2000-02-29T00:00:00.500");
  EXPECT_EQ(date("ns", -1), "1969-12-31T23:59:59.999999999");
  EXPECT_EQ(date("as", 1500000000000000001), "1970-01-01T00:00:01.500000000000000001");
  EXPECT_EQ(date("h", 3, 6), "1970-01-01T18") << "steps of six hours";
  EXPECT_EQ(json(time_type(Kind::datetime, "D"), std::int64_t{0}), "\"1970-01-01\"");
}

TEST(ValueText, NoTimeAndNoUnit) {
  EXPECT_EQ(date("ns", INT64_MIN), "NaT");
  EXPECT_EQ(json(time_type(Kind::datetime, "Y"), INT64_MIN), "null");
  EXPECT_EQ(json(time_type(Kind::timedelta, "h"), INT64_MIN), "null");
  EXPECT_EQ(text(time_type(Kind::timedelta, "h"), std::int64_t{-5}), "-5");
  EXPECT_EQ(date("generic", 5), "5");
}

TEST(ValueText, DatesThatNoCalendarReachesAreCounts) {
  for (const std::int64_t far : {INT64_MAX, INT64_MIN + 1})
    for (const char* unit : {"Y", "M", "W", "D", "h", "m", "s"}) {
      for (const std::int32_t multiplier : {1, INT32_MAX})
        EXPECT_EQ(date(unit, far, multiplier), std::to_string(far)) << unit << " " << multiplier;
    }
  // Every value of the finer units has a date.
  EXPECT_EQ(date("ms", INT64_MAX), "292278994-08-17T07:12:55.807");
  EXPECT_EQ(date("ns", INT64_MAX), "2262-04-11T23:47:16.854775807");
  EXPECT_EQ(date("Y", 99999), "101969");
}

TEST(ValueText, CharactersAreUtf8WithoutTheirPadding) {
  const DataType unicode = make_type(Kind::unicode, 16), bytes = make_type(Kind::bytes, 4);
  const std::uint32_t good[] = {0xe4, 0x20ac, 0x1f600, 0},
                      bad[] = {0xd800, 0x110000, 0xffffffff, 'a'}, inner[] = {'a', 0, 'b', 0};
  EXPECT_EQ(json(unicode, good), "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"");
  EXPECT_EQ(json(unicode, bad),
            "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
            "a\"")
      << "what is not a character is replaced";
  EXPECT_EQ(parse_json(json(unicode, inner), "").get<std::string>(), std::string("a\0b", 3));
  EXPECT_EQ(text(bytes, std::array<char, 4>{'a', '\n', '\x1b', 0}), "'a \\x1b'")
      << "nothing that moves a cursor";
  EXPECT_EQ(
      parse_json(json(bytes, std::array<char, 4>{'"', '\\', '\xff', 0}), "").get<std::string>(),
      "\"\\\xc3\xbf");
}

TEST(ValueText, RawBytesAreHexAndStructuresHaveTheirFields) {
  EXPECT_EQ(json(make_type(Kind::raw, 3), std::array<std::uint8_t, 3>{0, 0xab, 0x10}),
            "\"00ab10\"");
  DataType type = make_type(Kind::structured, 9);
  type.fields = {{"a", make_type(Kind::signed_int, 1), {}, 0},
                 {"b", make_type(Kind::unsigned_int, 2), {2, 2}, 1}};
  const std::uint8_t element[] = {0xff, 1, 0, 2, 0, 3, 0, 4, 0};
  EXPECT_EQ(json(type, element), R"({"a": -1, "b": [[1, 2], [3, 4]]})");
  EXPECT_EQ(text(type, element), "(-1, [[1, 2], [3, 4]])");
}

}  // namespace value_text_test
}  // namespace batchfs
