#include "engine/dataset/converter.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace {

CfDecoding decoding(const std::string& dtype, const Json& attributes) {
  const MemoryData data = MemoryData().declare("v", dtype, {"x"}, {4}, {4}, attributes);
  return cf_decoding(data.hierarchy.arrays.at("v"), {"x"});
}

template <class To, class From>
std::vector<To> convert(const Converter& converter, const std::vector<From>& source) {
  std::vector<To> result(source.size());
  converter.convert({static_cast<std::int64_t>(source.size())}, reinterpret_cast<const std::byte*>(source.data()),
                    {sizeof(From)}, reinterpret_cast<std::byte*>(result.data()), {sizeof(To)});
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
  // numpy.array([1.0004882812500002, 1.00048828125, 65519.9, 65520, 1e-8, 6e-8, -0.0]).astype("f2").view("u2").tolist()
  // The first lies above the middle of two halves by less than single precision shows.
  const auto halves = convert<std::uint16_t, double>(converter, {1.0004882812500002, 1.00048828125, 65519.9, 65520, 1e-8, 6e-8, -0.0});
  EXPECT_EQ(halves, (std::vector<std::uint16_t>{15361, 15360, 31743, 31744, 0, 1, 32768}));
}

TEST(Converter, CastsAfterTheScaling) {
  // (numpy.array([1, 2, -4], "i2") * 0.1 + 0.3).astype("f4").tolist()
  const Converter converter(decoding("<i2", {{"scale_factor", 0.1}, {"add_offset", 0.3}}), float32());
  EXPECT_EQ((convert<float, std::int16_t>(converter, {1, 2, -4})),
            (std::vector<float>{0.4000000059604645f, 0.5f, -0.10000000149011612f}));
}

TEST(Converter, RoundsAfterEveryOperation) {
  // numpy: (numpy.float64(x) * s) + o with two roundings differs from a fused multiply-add in the last bit
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
  EXPECT_EQ(std::vector<float>(transposed.begin(), transposed.begin() + 5), (std::vector<float>{0, 3, 1, 4, 2}));
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

TEST(Converter, OnlyFloatsAreCast) {
  for (const char* dtype : {"<i4", "|b1", "<c8", "<M8[ns]"}) {
    const Error error = error_of([&] { Converter(decoding(dtype, Json::object()), float32()); });
    EXPECT_EQ(error.code(), ErrorCode::not_supported) << dtype;
    EXPECT_NE(error.why().find("float32"), std::string::npos) << error.why();
  }
}

}  // namespace
}  // namespace batchfs
