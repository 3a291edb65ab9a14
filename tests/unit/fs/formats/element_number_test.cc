#include "fs/formats/element_number.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

namespace batchfs {
namespace element_number_test {

template <class T>
double number(const char* type, T value) {
  const DataType parsed = parse_numpy_type(type);
  EXPECT_TRUE(has_number(parsed)) << type;
  return element_number(parsed, reinterpret_cast<const std::byte*>(&value));
}

TEST(ElementNumber, OfEveryTypeWithNumbers) {
  EXPECT_EQ(number<std::uint8_t>("bool", 2), 1);
  EXPECT_EQ(number<std::uint8_t>("uint8", 200), 200);
  EXPECT_EQ(number<std::int8_t>("int8", -5), -5);
  EXPECT_EQ(number<std::uint16_t>("uint16", 65535), 65535);
  EXPECT_EQ(number<std::int32_t>("int32", -70000), -70000);
  EXPECT_EQ(number<std::uint64_t>("uint64", UINT64_C(1) << 63), std::ldexp(1.0, 63));
  EXPECT_EQ(number<float>("float32", 0.5F), 0.5);
  EXPECT_EQ(number<double>("float64", -0.25), -0.25);
  EXPECT_EQ(number<std::int64_t>("datetime64[ns]", 7), 7);
  EXPECT_TRUE(
      std::isnan(number<std::int64_t>("datetime64[ns]", std::numeric_limits<std::int64_t>::min())));
  const float complex[2] = {3, 4};
  EXPECT_EQ(
      element_number(parse_numpy_type("complex64"), reinterpret_cast<const std::byte*>(complex)),
      5);
  const std::uint16_t half = 0x3fc0;  // 1.5
  EXPECT_EQ(element_number(bfloat16(), reinterpret_cast<const std::byte*>(&half)), 1.5);
}

TEST(ElementNumber, TextsHaveNone) {
  for (const char* type : {"<U4", "|S3", "|V2"}) EXPECT_FALSE(has_number(parse_numpy_type(type)));
}

}  // namespace element_number_test
}  // namespace batchfs
