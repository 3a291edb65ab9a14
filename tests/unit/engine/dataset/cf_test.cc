#include "engine/dataset/cf.h"

#include <gmock/gmock.h>

#include "engine/dataset/converter.h"
#include "engine/dataset/read_variable.h"
#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace cf_test {

using testing::HasSubstr;

struct Case {
  const char* dtype;
  const char* stored;      // JSON list
  const char* attributes;  // JSON
  const char* decoded_type;
  const char* decoded;  // bytes in hexadecimal digits
};

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (std::byte b : bytes)
    for (int shift : {4, 0}) text += "0123456789abcdef"[(std::to_integer<int>(b) >> shift) & 15];
  return text;
}

/// Little-endian bytes of a list of numbers.
std::string bytes_of(const Json& list, const DataType& type) {
  std::string bytes;
  for (const Json& value : list) {
    const std::vector<std::byte> element = parse_fill_value(type, JsonRef(value, "stored"));
    bytes.append(reinterpret_cast<const char*>(element.data()), element.size());
  }
  return bytes;
}

NdArray decode(const Case& c, const Json& attributes) {
  const DataType type = parse_numpy_type(c.dtype);
  const Json list = parse_json(c.stored, "stored");
  MemoryData data;
  const std::string descr = type.npy_descr();
  const auto n = static_cast<std::int64_t>(list.size());
  data.declare("v", descr.substr(1, descr.size() - 2), {"x"}, {n}, {n}, attributes);
  data.store->objects["v/0"] = bytes_of(list, type);
  return read_variable(data.dataset()->variable("v"));
}

// decoded = xarray.decode_cf(xarray.Dataset({"v": ("x", numpy.array(stored, dtype),
// attributes)})).v.values, xarray 2026.9. The comments show it as text.
const Case kCases[] = {
    {"int16", R"([0, 1, -32768, 32767])",
     R"({"scale_factor": 1e-06, "add_offset": 0.01, "_FillValue": -32768})", "float64",
     "7b14ae47e17a843f2a1a6b7f677b843f000000000000f87f4031b2648ee5a53f"},  // 0.01 0.010001 nan
                                                                           // 0.042767
    {"int16", R"([0, 7, -999])", R"({"_FillValue": -999})", "float32",
     "000000000000e0400000c07f"},  // 0 7 nan
    {"int32", R"([0, 16777217, -999])", R"({"_FillValue": -999})", "float64",
     "00000000000000000000001000007041000000000000f87f"},  // 0 16777217 nan
    {"uint16", R"([0, 65535, 12])", R"({"_FillValue": 65535})", "float32",
     "000000000000c07f00004041"},  // 0 nan 12
    {"int8", R"([-1, -128, 5])", R"({"_Unsigned": "true", "_FillValue": -1})", "float32",
     "0000c07f000000430000a040"},  // nan 128 5
    {"uint8", R"([255, 128, 5])", R"({"_Unsigned": "false", "_FillValue": -1})", "float32",
     "0000c07f000000c30000a040"},  // nan -128 5
    {"float32", R"([1.5, -9999, -8888, 0.1])",
     R"({"_FillValue": -9999.0, "missing_value": -8888.0})", "float32",
     "0000c03f0000c07f0000c07fcdcccc3d"},  // 1.5 nan nan 0.1
    {"float32", R"([1.5, 0.1, 3])", R"({"_FillValue": NaN, "scale_factor": 0.5})", "float32",
     "0000403fcdcc4c3d0000c03f"},  // 0.75 0.05 1.5
    {"float32", R"([1.1, 0.1, 3])", R"({"scale_factor": 0.1})", "float64",
     "cdccccccf528bc3fcdcccc4ce17a843f343333333333d33f"},  // 0.11000000238 0.01000000015
                                                           // 0.30000000000000004
    {"float32", R"([1.1, 0.1, 3])", R"({"add_offset": 0.1})", "float64",
     "9a9999393333f33fcdcccc9c9999c93fcdcccccccccc0840"},  // 1.20000002384 0.20000000149 3.1
    {"float16", R"([1.1, 0.1, -5])", R"({"_FillValue": -5.0})", "float16",
     "663c662e007e"},  // 1.0996 0.09998 nan
    {"int16", R"([1, 2, -3])", R"({"scale_factor": 0.1})", "float64",
     "9a9999999999b93f9a9999999999c93f343333333333d3bf"},  // 0.1 0.2 -0.30000000000000004
    {"int16", R"([1, 2, -3])", R"({"scale_factor": 10})", "int64",
     "0a000000000000001400000000000000e2ffffffffffffff"},  // 10 20 -30
    {"int16", R"([1, 2, -3])", R"({"add_offset": 10})", "float64",
     "000000000000264000000000000028400000000000001c40"},  // 11 12 7
    {"int16", R"([1, 2, -3])", R"({"missing_value": [2, -3]})", "float32",
     "0000803f0000c07f0000c07f"},  // 1 nan nan
    {"int64", R"([9007199254740993, 2, -3])", R"({"_FillValue": 2})", "float64",
     "0000000000004043000000000000f87f00000000000008c0"},  // 9007199254740992 nan -3
    {"int8", R"([0, 1, 2])", R"({"dtype": "bool"})", "bool", "000101"},
    {"int32", R"([0, 1, 876576, -1])", R"({"units": "hours since 1900-01-01"})",
     "datetime64[ns]",  // 1900-01-01T00 1900-01-01T01 2000-01-01T00 1899-12-31T23
     "00002fdf631858e100a0e70faa1b58e100004352cf4c230d006076ae1d1558e1"},
    {"int32", R"([0, 1, -1])", R"({"units": "hours since 1900-01-01 00:00:0.0", "_FillValue": -1})",
     "datetime64[ns]",
     "00002fdf631858e100a0e70faa1b58e10000000000000080"},  // 1900-01-01T00 1900-01-01T01 NaT
    {"float64", R"([0, 0.5, "NaN", -1.25])", R"({"units": "days since 2000-01-01"})",
     "datetime64[ns]",  // 2000-01-01T00 2000-01-01T12 NaT 1999-12-30T18
     "00004352cf4c230d0080ea9a1974230d00000000000000800040a09c95ea220d"},
    {"float32", R"([0, 0.1, 9.96921e+36])",
     R"({"units": "days since 2000-01-01", "_FillValue": 9.969209968386869e+36})", "datetime64[ns]",
     "00004352cf4c230dea7666faaa54230d0000000000000080"},  // 2000-01-01
                                                           // 2000-01-01T02:24:00.000128746 NaT
    {"int64", R"([0, 1, 9223372036854775807])",
     R"({"units": "seconds since 1970-01-01", "_FillValue": 9223372036854775807})",
     "datetime64[ns]",
     "000000000000000000ca9a3b000000000000000000000080"},  // 1970-01-01 1970-01-01T00:00:01 NaT
    {"int64", R"([0, 1, -9223372036854775808])",
     R"({"units": "days since 1970-01-01", "calendar": "proleptic_gregorian"})", "datetime64[ns]",
     "000000000000000000004f91944e00000000000000000080"},  // 1970-01-01 1970-01-02 NaT
    {"int32", R"([719163, 730120])",
     R"({"units": "days since 0001-01-01", "calendar": "standard"})", "datetime64[ns]",
     "0000b16e6bb1ffff0000f4c03afe220d"},  // 1969-12-31 1999-12-31
    {"int32", R"([719162, 730119])",
     R"({"units": "days since 0001-01-01", "calendar": "proleptic_gregorian"})", "datetime64[ns]",
     "000000000000000000004352cf4c230d"},  // 1970-01-01 2000-01-01
    {"int32", R"([0, 3])", R"({"units": "minutes since 2000-02-28T23:30:00 +05:30"})",
     "datetime64[ns]", "004024ab6755350d0048fa939155350d"},  // 2000-02-28T18:00 2000-02-28T18:03
    {"int32", R"([0, 3])", R"({"units": "msec since 2000-1-1 6:0:0.25"})", "datetime64[ns]",
     "80727d857460230d4039ab857460230d"},  // 2000-01-01T06:00:00.250 2000-01-01T06:00:00.253
    {"int32", R"([0, 3, -7])", R"({"units": "seconds", "dtype": "timedelta64[s]"})",
     "timedelta64[s]", "00000000000000000300000000000000f9ffffffffffffff"},  // 0 3 -7
    {"int32", R"([0, 3, -7])",
     R"({"units": "hours", "dtype": "timedelta64[ns]", "_FillValue": -7})", "timedelta64[ns]",
     "000000000000000000e02992d20900000000000000000080"},  // 0 10800000000000 NaT
    {"int32", R"([0, 3, -7])", R"({"units": "hours"})", "int32", "0000000003000000f9ffffff"},
    {"int16", R"([10, 20, -1])",
     R"({"units": "hours since 2000-01-01", "scale_factor": 0.5, "_FillValue": -1})",
     "datetime64[ns]",
     "0020de452e5d230d004079398d6d230d0000000000000080"},  // 2000-01-01T05 2000-01-01T10 NaT
    {"uint32", R"([0, 4294967295])", R"({"units": "seconds since 1970-01-01"})", "datetime64[ns]",
     "0000000000000000003665c4ffc99a3b"},  // 1970-01-01 2106-02-07T06:28:15
};

class CfDecodes : public testing::TestWithParam<Case> {};

TEST_P(CfDecodes, AsXarrayDoes) {
  const Case& c = GetParam();
  SCOPED_TRACE(std::string(c.stored) + " " + c.attributes);
  const NdArray decoded = decode(c, parse_json(c.attributes, "attributes"));
  EXPECT_EQ(decoded.type.name(), c.decoded_type);
  EXPECT_EQ(hex(std::span(decoded.data.data(), decoded.data.size())), c.decoded);
}
INSTANTIATE_TEST_SUITE_P(Values, CfDecodes, testing::ValuesIn(kCases));

ArrayMetadata array(const std::string& dtype, const Json& attributes, const Json& fill = nullptr) {
  return MemoryData()
      .declare("v", dtype, {"x"}, {3}, {3}, attributes, fill)
      .hierarchy.arrays.at("v");
}

TEST(Cf, TheFillValueOfFormat2StandsForTheAttribute) {
  const CfDecoding cf = cf_decoding(array("<i2", {{"_FillValue", 5}}, -1));
  EXPECT_EQ(cf.masked, std::vector<double>{-1});
  EXPECT_EQ(cf.decoded.name(), "float32");
}

TEST(Cf, WithoutAttributesNothingIsDone) {
  EXPECT_TRUE(cf_decoding(array("<i2", Json::object())).is_identity());
  EXPECT_TRUE(raw_decoding(array("<i2", {{"scale_factor", 0.5}}, 3)).is_identity());
  EXPECT_FALSE(cf_decoding(array("<i2", {{"scale_factor", 0.5}})).is_identity());
}

TEST(Cf, PackingThatIsNoNumberIsRefusedByName) {
  const Error scale = error_of([] { cf_decoding(array("<i2", {{"scale_factor", "much"}})); });
  EXPECT_EQ(scale.code(), ErrorCode::invalid_argument);
  EXPECT_THAT(scale.why(), HasSubstr("scale_factor"));
  const Error offset = error_of([] { cf_decoding(array("<i2", {{"add_offset", {1, 2}}})); });
  EXPECT_THAT(offset.why(), HasSubstr("add_offset"));
}

TEST(Cf, CalendarsThatDatetime64CannotHoldStayNumbersWithANote) {
  for (const char* calendar : {"noleap", "360_day", "julian", "all_leap"}) {
    const CfDecoding cf =
        cf_decoding(array("<i4", {{"units", "days since 2000-01-01"}, {"calendar", calendar}}));
    EXPECT_EQ(cf.time, CfDecoding::Time::none);
    EXPECT_EQ(cf.decoded.name(), "int32");
    EXPECT_THAT(cf.note, HasSubstr(calendar));
    EXPECT_THAT(cf.note, HasSubstr("days since 2000-01-01"));
  }
}

TEST(Cf, TimesOutsideOfDatetime64AreRefusedNotWrapped) {
  const Case far{"int64", "[0, 200000]", "", "", ""};
  const Error error = error_of([&] { decode(far, {{"units", "days since 2000-01-01"}}); });
  EXPECT_EQ(error.code(), ErrorCode::not_supported);
  EXPECT_THAT(error.why(), HasSubstr("datetime64[ns]"));
  EXPECT_EQ(error.where(), "v");
  const Case infinite{"float64", "[\"Infinity\"]", "", "", ""};
  EXPECT_EQ(error_of([&] {
              decode(infinite, {{"units", "days since 2000-01-01"}});
            }).code(),
            ErrorCode::not_supported);
}

TEST(Cf, HostileAttributesDoNoHarm) {
  for (const Json& attributes :
       {Json{{"units", ""}}, Json{{"units", 5}}, Json{{"units", "days"}, {"dtype", "timedelta64["}},
        Json{{"units", "days"}, {"dtype", "timedelta64[]"}}, Json{{"units", "days since"}},
        Json{{"units", "since"}}, Json{{"_FillValue", Json::array()}}, Json{{"_FillValue", "text"}},
        Json{{"missing_value", Json::object()}}, Json{{"_FillValue", {1, 2, 3}}},
        Json{{"dtype", 5}}, Json{{"_Unsigned", true}}, Json{{"scale_factor", nullptr}}}) {
    SCOPED_TRACE(attributes.dump());
    const CfDecoding cf = cf_decoding(array("<i4", attributes));
    EXPECT_EQ(cf.decoded.name(), "int32");
  }
}

TEST(Cf, CharacterArraysJoinTheirLastDimension) {
  const ArrayMetadata names = MemoryData()
                                  .declare("n", "|S1", {"station", "length"}, {2, 7}, {2, 7})
                                  .hierarchy.arrays.at("n");
  const CfDecoding cf = cf_decoding(names);
  EXPECT_EQ(cf.joined_characters, 7);
  EXPECT_EQ(cf.decoded.name(), "|S7");
}

TEST(Cf, StoredTimesArePassedOn) {
  MemoryData data;
  data.add<std::int64_t>("day", "<M8[D]", {"x"}, {2}, {10957, INT64_MIN},
                         {{"missing_value", 10957}}, 10957);
  const NdArray day = read_variable(data.dataset()->variable("day"));
  EXPECT_EQ(day.type.name(), "datetime64[D]");
  EXPECT_EQ(values_of<std::int64_t>(day), (std::vector<std::int64_t>{10957, INT64_MIN}));
}

// [(numpy.datetime64(d) - numpy.datetime64("1970-01-01")).astype(int) for d in ...]
TEST(Cf, DaysOfTheGregorianCalendar) {
  EXPECT_EQ(days_from_civil(1970, 1, 1), 0);
  EXPECT_EQ(days_from_civil(2000, 2, 29), 11016);
  EXPECT_EQ(days_from_civil(1600, 3, 1), -135080);
  EXPECT_EQ(days_from_civil(-4, 12, 31), -720624);
  EXPECT_EQ(days_from_civil(9999, 12, 31), 2932896);
  for (std::int64_t days = -800000; days < 800000; days += 373) {
    std::int64_t year;
    int month, day;
    civil_from_days(days, year, month, day);
    EXPECT_EQ(days_from_civil(year, month, day), days);
  }
}

// Gregorian calendars repeat after 146097 days: Python's date.fromordinal((days - k * 146097) +
// 719163), and k * 400 years.
TEST(Cf, DaysMayBeAsManyAsThereAre) {
  std::int64_t year;
  int month, day;
  civil_from_days(INT64_MAX, year, month, day);
  EXPECT_EQ(std::tuple(year, month, day), std::tuple(std::int64_t{25252734927768524}, 7, 27));
  civil_from_days(INT64_MIN, year, month, day);
  EXPECT_EQ(std::tuple(year, month, day), std::tuple(std::int64_t{-25252734927764585}, 6, 7));
}

}  // namespace cf_test
}  // namespace batchfs
