#include "engine/dataset/converter.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace converter_test {

CfDecoding decoding(const std::string& dtype, const Json& attributes) {
  const MemoryData data = MemoryData().declare("v", dtype, {"x"}, {4}, {4}, attributes);
  return cf_decoding(data.hierarchy.arrays.at("v"));
}

template <class To, class From>
std::vector<To> convert(const Converter& converter, const std::vector<From>& source) {
  std::vector<To> result(source.size());
  converter.convert({static_cast<std::int64_t>(source.size())},
                    reinterpret_cast<const std::byte*>(source.data()), {sizeof(From)},
                    reinterpret_cast<std::byte*>(result.data()), {sizeof(To)});
  return result;
}

TEST(Converter, WithoutDecodingItIsACopy) {
  const CfDecoding cf = decoding("<f4", Json::object());
  const Converter converter(cf, cf.decoded);
  EXPECT_TRUE(converter.is_copy());
  EXPECT_TRUE(converter.in_place());
  EXPECT_EQ((convert<float, float>(converter, {1.5f, -2})), (std::vector<float>{1.5f, -2}));
}

TEST(Converter, RoundsToHalfPrecisionOnce) {
  const Converter converter(decoding("<f8", Json::object()), make_type(Kind::floating, 2));
  EXPECT_FALSE(converter.is_copy());
  EXPECT_FALSE(converter.in_place());
  // numpy.array([1.0004882812500002, 1.00048828125, 65519.9, 65520, 1e-8, 6e-8,
  // -0.0]).astype("f2").view("u2").tolist() The first lies above the middle of two halves by less
  // than single precision shows.
  const auto halves = convert<std::uint16_t, double>(
      converter, {1.0004882812500002, 1.00048828125, 65519.9, 65520, 1e-8, 6e-8, -0.0});
  EXPECT_EQ(halves, (std::vector<std::uint16_t>{15361, 15360, 31743, 31744, 0, 1, 32768}));
}

TEST(Converter, CastsAfterTheScaling) {
  // (numpy.array([1, 2, -4], "i2") * 0.1 + 0.3).astype("f4").tolist()
  const Converter converter(decoding("<i2", {{"scale_factor", 0.1}, {"add_offset", 0.3}}),
                            float32());
  EXPECT_EQ((convert<float, std::int16_t>(converter, {1, 2, -4})),
            (std::vector<float>{0.4000000059604645f, 0.5f, -0.10000000149011612f}));
}

TEST(Converter, RoundsAfterEveryOperation) {
  // numpy: (numpy.float64(x) * s) + o with two roundings differs from a fused multiply-add in the
  // last bit
  const double x = 3.0, s = 0.1, o = -0.3;
  const Converter converter(decoding("<f8", {{"scale_factor", s}, {"add_offset", o}}), float64());
  volatile double product = x * s;
  const double expected = product + o;
  EXPECT_NE(expected, std::fma(x, s, o));
  EXPECT_EQ((convert<double, double>(converter, {x}))[0], expected);
}

TEST(Converter, MasksSeveralValues) {
  const CfDecoding cf = decoding("<f4", {{"_FillValue", -1.0}, {"missing_value", {-2.0, -3.0}}});
  const auto values = convert<float, float>(Converter(cf, cf.decoded), {-1, -2, -3, 4});
  EXPECT_TRUE(std::isnan(values[0]) && std::isnan(values[1]) && std::isnan(values[2]));
  EXPECT_EQ(values[3], 4);
}

TEST(Converter, AMaskedValueDoesNotBecomeAnotherMask) {
  // Missing is NaN at once; 5 * 2 is not compared with the mask 10 again.
  const CfDecoding cf = decoding("<f8", {{"_FillValue", 10.0}, {"scale_factor", 2.0}});
  EXPECT_EQ((convert<double, double>(Converter(cf, cf.decoded), {5}))[0], 10);
}

TEST(Converter, FollowsStridesInBothDirections) {
  const CfDecoding cf = decoding("<i2", {{"_FillValue", -1}});
  const Converter converter(cf, cf.decoded);
  const std::vector<std::int16_t> source{0, 1, 2, 3, 4, -1};  // 2 by 3
  std::vector<float> transposed(6, -7);
  converter.convert({2, 3}, reinterpret_cast<const std::byte*>(source.data()), {6, 2},
                    reinterpret_cast<std::byte*>(transposed.data()), {4, 8});
  EXPECT_EQ(std::vector<float>(transposed.begin(), transposed.begin() + 5),
            (std::vector<float>{0, 3, 1, 4, 2}));
  EXPECT_TRUE(std::isnan(transposed[5]));
  std::vector<float> reversed(3, -7);
  converter.convert({3}, reinterpret_cast<const std::byte*>(source.data()), {2},
                    reinterpret_cast<std::byte*>(reversed.data() + 2), {-4});
  EXPECT_EQ(reversed, (std::vector<float>{2, 1, 0}));
}

TEST(Converter, EmptyAndScalarBoxes) {
  const CfDecoding cf = decoding("<i2", {{"_FillValue", -1}});
  const Converter converter(cf, cf.decoded);
  const std::int16_t source = 9;
  float result = -7;
  const auto* from = reinterpret_cast<const std::byte*>(&source);
  auto* to = reinterpret_cast<std::byte*>(&result);
  converter.convert({0, 5}, from, {10, 2}, to, {20, 4});
  EXPECT_EQ(result, -7);
  converter.convert({}, from, {}, to, {});
  EXPECT_EQ(result, 9);
}

TEST(Converter, IntegersMayBeDecodedInPlace) {
  const CfDecoding cf = decoding("<i4", {{"units", "days since 2000-01-01"}});
  EXPECT_FALSE(Converter(cf, cf.decoded).in_place());
  const CfDecoding wide = decoding("<i8", {{"units", "days since 1970-01-01"}});
  const Converter converter(wide, wide.decoded);
  ASSERT_TRUE(converter.in_place());
  std::vector<std::int64_t> values{0, 1};
  auto* bytes = reinterpret_cast<std::byte*>(values.data());
  converter.convert({2}, bytes, {8}, bytes, {8});
  EXPECT_EQ(values, (std::vector<std::int64_t>{0, 86400000000000}));
}

Finish normalized(std::vector<double> subtract, std::vector<double> divide, const Dims& strides) {
  Finish finish;
  finish.normalization = std::make_shared<Normalization>(Normalization{
      .subtract = std::move(subtract), .divide = std::move(divide), .strides = strides});
  return finish;
}

TEST(Converter, NormalizesInDoublePrecision) {
  // ((numpy.array([280.1, -3, numpy.nan], "f4").astype("f8") - 278.4)
  // / 21.3).astype("f4").view("u4").tolist()
  const Converter converter(decoding("<f4", Json::object()), float32(),
                            normalized({278.4}, {21.3}, {0}));
  EXPECT_FALSE(converter.is_copy());
  const auto words = convert<std::uint32_t, float>(converter, {280.1f, -3, NAN});
  EXPECT_EQ(words[0], 1034122427u);
  EXPECT_EQ(words[1], 3243467098u);
  EXPECT_TRUE(words[2] > 0x7f800000u && words[2] < 0x80000000u);
}

TEST(Converter, NormalizesLongRunsAndIntegers) {
  std::vector<std::int64_t> values(1500);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int64_t>(i) - 700;
  const Converter converter(decoding("<i8", Json::object()), float64(),
                            normalized({0.5}, {4}, {0}));
  const auto result = convert<double, std::int64_t>(converter, values);
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(result[i], (static_cast<double>(values[i]) - 0.5) / 4) << i;
}

TEST(Converter, NumbersOfTheirOwnAlongDimensions) {
  // Array of (3, 2, 4); numbers along the first and the last dimension; a box from (1, 0, 2) on.
  std::vector<double> subtract(12), divide(12, 1);
  for (std::size_t i = 0; i < 12; ++i) subtract[i] = 100.0 * static_cast<double>(i);
  const Converter converter(decoding("<f4", Json::object()), float64(),
                            normalized(subtract, divide, {4, 0, 1}));
  ASSERT_TRUE(converter.by_position());
  std::vector<float> source(2 * 2 * 2);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<float>(i);
  std::vector<double> result(source.size());
  converter.convert({2, 2, 2}, reinterpret_cast<const std::byte*>(source.data()), {16, 8, 4},
                    reinterpret_cast<std::byte*>(result.data()), {32, 16, 8}, {1, 0, 2});
  EXPECT_EQ(result, (std::vector<double>{0 - 600, 1 - 700, 2 - 600, 3 - 700, 4 - 1000, 5 - 1100,
                                         6 - 1000, 7 - 1100}));
}

TEST(Converter, ReplacesNanAfterNormalizing) {
  Finish finish = normalized({10}, {2}, {0});
  finish.nan_value = 0;
  const Converter both(decoding("<f4", {{"_FillValue", -1.0}}), float32(), finish);
  EXPECT_EQ((convert<float, float>(both, {12, -1, NAN, 8})), (std::vector<float>{1, 0, 0, -1}));
  finish.normalization = nullptr;
  finish.nan_value = -9.5;
  const Converter alone(decoding("<f8", Json::object()), make_type(Kind::floating, 2), finish);
  // numpy.array([1.0004882812500002, -9.5, -0.0], "f2").view("u2").tolist()
  EXPECT_EQ((convert<std::uint16_t, double>(alone, {1.0004882812500002, NAN, -0.0})),
            (std::vector<std::uint16_t>{15361, 51392, 32768}));
}

TEST(Converter, RoundsToBfloat16) {
  const Converter converter(decoding("<f4", Json::object()), bfloat16());
  EXPECT_EQ(converter.result_itemsize(), 2u);
  // numpy.array([...], "f4").astype(ml_dtypes.bfloat16).view("u2")
  EXPECT_EQ((convert<std::uint16_t, float>(
                converter, {1, 1.00390625f, 1.01171875f, 1.00390637f, -3.4e38f, NAN, 1e-40f})),
            (std::vector<std::uint16_t>{0x3f80, 0x3f80, 0x3f82, 0x3f81, 0xff80, 0x7fc0, 0x0001}));
}

TEST(Converter, IntegersBecomeDoubles) {
  const Converter converter(decoding("<i2", Json::object()), float64());
  EXPECT_EQ((convert<double, std::int16_t>(converter, {-5, 7})), (std::vector<double>{-5, 7}));
  const Converter scaled(decoding("<i2", {{"scale_factor", 3}}), float64());
  EXPECT_EQ((convert<double, std::int16_t>(scaled, {-5, 7})), (std::vector<double>{-15, 21}));
}

TEST(Converter, FloatsWithAWholeScaleBecomeIntegers) {
  // xarray.decode_cf of numpy.array([1.5, inf, nan, 1e30, -1e30, 7], "f4") with scale_factor 3
  const CfDecoding cf = decoding("<f4", {{"scale_factor", 3}});
  EXPECT_EQ(cf.decoded.name(), "int64");
  const Converter converter(cf, cf.decoded);
  EXPECT_EQ((convert<std::int64_t, float>(converter, {1.5f, INFINITY, NAN, 1e30f, -1e30f, 7})),
            (std::vector<std::int64_t>{3, INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN, 21}));
}

TEST(Converter, OnlyFloatsAreCast) {
  for (const char* dtype : {"<i4", "|b1", "<c8", "<M8[ns]"}) {
    const Error error = error_of([&] { Converter(decoding(dtype, Json::object()), float32()); });
    EXPECT_EQ(error.code(), ErrorCode::not_supported) << dtype;
    EXPECT_NE(error.why().find("float32"), std::string::npos) << error.why();
  }
}

}  // namespace converter_test
}  // namespace batchfs
