#include "engine/zarr/data_type.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

namespace batchfs {
namespace fill_value_test {

std::string digits_of(const std::vector<std::byte>& bytes) {
  std::string digits;
  for (std::byte b : bytes) digits += fmt::format("{:02x}", static_cast<int>(b));
  return digits;
}

std::string fill_of(const DataType& type, const char* json) {
  const Json fill = parse_json(json, "t");
  try {
    return digits_of(parse_fill_value(type, JsonRef(fill, "fill_value")));
  } catch (const Error& error) {
    return error.what();
  }
}

DataType v3(const char* json) {
  const Json type = parse_json(json, "t");
  return parse_v3_type(JsonRef(type, "data_type"));
}

DataType v2(const char* json) {
  const Json type = parse_json(json, "t");
  return parse_v2_type(JsonRef(type, "dtype"), "");
}

struct Case {
  const char* type;
  const char* fill;
  const char* bytes;
};

// The bytes that zarr-python 3.1 makes of them:
//   z = zarr.core.dtype.get_data_type_from_json(type, zarr_format=3)
//   np.array(z.from_json_scalar(fill, zarr_format=3), z.to_native_dtype()).tobytes().hex()
TEST(FillValue, OfEveryTypeOfV3) {
  const Case cases[] = {
      {"\"bool\"", "true", "01"},
      {"\"int8\"", "-128", "80"},
      {"\"int16\"", "-2", "feff"},
      {"\"int32\"", "2147483647", "ffffff7f"},
      {"\"int64\"", "-9223372036854775808", "0000000000000080"},
      {"\"int64\"", "9223372036854775807", "ffffffffffffff7f"},
      {"\"uint8\"", "255", "ff"},
      {"\"uint64\"", "18446744073709551615", "ffffffffffffffff"},
      {"\"float16\"", "0.1", "662e"},
      {"\"float16\"", "65504.0", "ff7b"},
      {"\"float16\"", "1e-07", "0200"},
      {"\"float16\"", "\"NaN\"", "007e"},
      {"\"float16\"", "\"-Infinity\"", "00fc"},
      {"\"float16\"", "1.00048828125", "003c"},
      {"\"float16\"", "1.0004882812500002", "013c"},  // rounded once, not by way of float32
      {"\"float16\"", "-2.98e-8", "0080"},
      {"\"float16\"", "3.0547380447387695e-05", "0002"},
      {"\"float32\"", "0.1", "cdcccc3d"},
      {"\"float32\"", "\"NaN\"", "0000c07f"},
      {"\"float32\"", "\"Infinity\"", "0000807f"},
      {"\"float32\"", "\"0x7fc00001\"", "0100c07f"},
      {"\"float32\"", "\"0xffc00000\"", "0000c0ff"},
      {"\"float32\"", "1e-45", "01000000"},
      {"\"float64\"", "0.1", "9a9999999999b93f"},
      {"\"float64\"", "\"0x7ff8000000000001\"", "010000000000f87f"},
      {"\"float64\"", "-0.0", "0000000000000080"},
      {"\"float64\"", "1e300", "9c7500883ce4377e"},
      {"\"complex64\"", "[1.5, \"NaN\"]", "0000c03f0000c07f"},
      {"\"complex64\"", "[\"0x7fc00001\", \"-Infinity\"]", "0100c07f000080ff"},
      {"\"complex128\"", "[0.1, -0.0]", "9a9999999999b93f0000000000000080"},
      {R"({"name": "numpy.datetime64", "configuration": {"unit": "ns", "scale_factor": 1}})",
       "\"NaT\"", "0000000000000080"},
      {R"({"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 10}})", "-7",
       "f9ffffffffffffff"},
      {R"({"name": "numpy.timedelta64", "configuration": {"unit": "h", "scale_factor": 1}})",
       "\"NaT\"", "0000000000000080"},
      {R"({"name": "numpy.timedelta64", "configuration": {"unit": "h", "scale_factor": 1}})", "12",
       "0c00000000000000"},
      {R"({"name": "fixed_length_utf32", "configuration": {"length_bytes": 16}})",
       "\"h\\u00e9\\ud83d\\ude00\"", "68000000e900000000f6010000000000"},
      {R"({"name": "null_terminated_bytes", "configuration": {"length_bytes": 4}})", "\"YWI=\"",
       "61620000"},
      {R"({"name": "raw_bytes", "configuration": {"length_bytes": 3}})", "\"AQID\"", "010203"},
      // v3 core: "an array of integers, one per byte".
      {"\"r24\"", "[1, 2, 255]", "0102ff"},
  };
  for (const Case& c : cases)
    EXPECT_EQ(fill_of(v3(c.type), c.fill), c.bytes) << c.type << " " << c.fill;
}

// The same for zarr_format=2 and {"name": type, "object_codec_id": None}, values in native order.
TEST(FillValue, OfEveryTypeOfV2) {
  const Case cases[] = {
      {"\"|b1\"", "true", "01"},
      {"\"|b1\"", "false", "00"},
      {"\"<i2\"", "-2", "feff"},
      {"\">i2\"", "-2", "feff"},
      {"\">u4\"", "7", "07000000"},
      {"\"<f2\"", "\"NaN\"", "007e"},
      {"\">f4\"", "1.5", "0000c03f"},
      {"\"<f4\"", "\"Infinity\"", "0000807f"},
      {"\"<c8\"", "[1.5, -2.0]", "0000c03f000000c0"},
      {"\">c16\"", "[1.5, \"NaN\"]", "000000000000f83f000000000000f87f"},
      {"\"<M8[ns]\"", "-9223372036854775808", "0000000000000080"},
      {"\"<M8[D]\"", "5", "0500000000000000"},
      {"\">m8[s]\"", "-3", "fdffffffffffffff"},
      {"\"|S3\"", "\"YWI=\"", "616200"},
      {"\"|S3\"", "\"AAAA\"", "000000"},
      {"\"<U3\"", "\"ab\"", "610000006200000000000000"},
      {"\">U3\"", "\"h\\u00e9\"", "68000000e900000000000000"},
      {"\"|V4\"", "\"AQIDBA==\"", "01020304"},
      {R"([["a", "<i2"], ["b", ">f4"]])", "\"AQA/gAAA\"", "01000000803f"},
      {"\"<f8\"", "\"0.0\"", "0000000000000000"},
      {"\"<i4\"", "\"0\"", "00000000"},
      {"\"<i4\"", "0.0", "00000000"},
  };
  for (const Case& c : cases)
    EXPECT_EQ(fill_of(v2(c.type), c.fill), c.bytes) << c.type << " " << c.fill;
}

TEST(FillValue, NullIsZeroAndForTimesNat) {
  EXPECT_EQ(fill_of(float32(), "null"), "00000000");
  EXPECT_EQ(fill_of(make_type(Kind::unicode, 8), "null"), "0000000000000000");
  EXPECT_EQ(fill_of(make_type(Kind::datetime, 8), "null"), "0000000000000080");
  EXPECT_EQ(fill_of(make_type(Kind::timedelta, 8), "null"), "0000000000000080");
}

TEST(FillValue, IsLenientWhereWritersAreSloppy) {
  const DataType int64 = make_type(Kind::signed_int, 8), uint64 = make_type(Kind::unsigned_int, 8);
  EXPECT_EQ(fill_of(int64, "\"9007199254740993\""),
            "0100000000002000");  // more digits than a double has
  EXPECT_EQ(fill_of(int64, "\"-9223372036854775808\""), "0000000000000080");
  EXPECT_EQ(fill_of(uint64, "\"18446744073709551615\""), "ffffffffffffffff");
  EXPECT_EQ(fill_of(uint64, "1e19"), "0000e8890423c78a");
  EXPECT_EQ(fill_of(make_type(Kind::signed_int, 2), "\"-3.0\""), "fdff");
  EXPECT_EQ(fill_of(make_type(Kind::unsigned_int, 1), "true"), "01");
  EXPECT_EQ(fill_of(make_type(Kind::boolean, 1), "1"), "01");
  EXPECT_EQ(fill_of(make_type(Kind::boolean, 1), "\"0\""), "00");
  EXPECT_EQ(fill_of(float32(), "3"), "00004040");
  EXPECT_EQ(fill_of(float32(), "false"), "00000000");
  EXPECT_EQ(fill_of(float32(), "NaN"), "0000c07f");  // the bare token
  EXPECT_EQ(fill_of(make_type(Kind::complex, 8), "1.5"), "0000c03f00000000");
  EXPECT_EQ(fill_of(make_type(Kind::bytes, 2), "0"), "0000");
  EXPECT_EQ(fill_of(make_type(Kind::unicode, 4), "0"), "00000000");
  EXPECT_EQ(fill_of(make_type(Kind::raw, 2), "\"\""), "0000");
}

TEST(FillValue, ThatTheTypeCannotHoldIsRefused) {
  const char* out_of_range = "fill_value: out of range for the data type";
  for (const char* json : {"128", "-129", "1e10", "\"128\"", "9223372036854775808"})
    EXPECT_EQ(fill_of(make_type(Kind::signed_int, 1), json), out_of_range) << json;
  for (const char* json : {"256", "-1", "\"-1\"", "-1.0"})
    EXPECT_EQ(fill_of(make_type(Kind::unsigned_int, 1), json), out_of_range) << json;
  for (const char* json : {"9223372036854775808", "9.3e18", "-9.3e18", "\"9223372036854775808\""})
    EXPECT_EQ(fill_of(make_type(Kind::signed_int, 8), json), out_of_range) << json;
  for (const char* json : {"-1", "-1.0", "\"-5\""})
    EXPECT_EQ(fill_of(make_type(Kind::unsigned_int, 8), json), out_of_range) << json;
  for (const char* json :
       {"1.5", "NaN", "\"Infinity\"", "1e300", "\"1.5\"", "\"18446744073709551616\""})
    EXPECT_EQ(fill_of(make_type(Kind::unsigned_int, 8), json),
              "fill_value: not a whole number, as the data type needs")
        << json;
}

TEST(FillValue, OfAWrongTypeIsRefused) {
  EXPECT_EQ(fill_of(float32(), "\"much\""), "fill_value: 'much' is not a number");
  EXPECT_EQ(fill_of(float32(), "\"\""), "fill_value: '' is not a number");
  EXPECT_EQ(fill_of(float32(), "[1]"), "fill_value: expected a number");
  EXPECT_EQ(fill_of(float32(), "{}"), "fill_value: expected a number");
  EXPECT_EQ(fill_of(make_type(Kind::signed_int, 4), "[1]"), "fill_value: expected a number");
  EXPECT_EQ(fill_of(make_type(Kind::boolean, 1), "{}"), "fill_value: expected a number");
  for (const char* bits :
       {"\"0x7fc\"", "\"0x7fc000000\"", "\"0xzzzzzzzz\"", "\"0x\"", "\"0x-fc00000\""})
    EXPECT_EQ(fill_of(float32(), bits),
              "fill_value: not the bits of a floating-point number of this size")
        << bits;
  EXPECT_EQ(fill_of(make_type(Kind::complex, 8), "[1, 2, 3]"),
            "fill_value: expected [real, imaginary]");
  EXPECT_EQ(fill_of(make_type(Kind::complex, 8), "[1, {}]"), "fill_value[1]: expected a number");
  EXPECT_EQ(fill_of(datetime_ns(), "\"2000-01-01\""), "fill_value: expected a whole number");
  EXPECT_EQ(fill_of(datetime_ns(), "1.5"), "fill_value: expected a whole number");
  EXPECT_EQ(fill_of(make_type(Kind::unicode, 8), "\"abc\""),
            "fill_value: longer than the data type");
  EXPECT_EQ(fill_of(make_type(Kind::unicode, 8), "7"), "fill_value: expected a string");
  EXPECT_EQ(fill_of(make_type(Kind::bytes, 2), "\"AQID\""),
            "fill_value: longer than the data type");
  EXPECT_EQ(fill_of(make_type(Kind::bytes, 2), "\"A*\""), "fill_value: not base64");
  EXPECT_EQ(fill_of(make_type(Kind::raw, 2), "[1, 2, 3]"), "fill_value: longer than the data type");
  EXPECT_EQ(fill_of(make_type(Kind::raw, 2), "[256]"),
            "fill_value[0]: 256 is too large, the most is 255");
  EXPECT_EQ(fill_of(v2(R"([["a", "<i2"], ["b", "<i2"]])"), R"({"a": 1})"),
            "fill_value: the key 'b' is missing");
  EXPECT_EQ(fill_of(v2(R"([["a", "<i2", [2]]])"), R"({"a": 1})"),
            "fill_value: fill values of fields that are arrays are not supported");
  EXPECT_EQ(fill_of(make_type(Kind::raw, 2), R"({"a": 1})"),
            "fill_value: fields, but the type has none");
}

}  // namespace fill_value_test
}  // namespace batchfs
