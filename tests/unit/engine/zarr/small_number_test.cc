#include "engine/zarr/small_number.h"

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

// All codes of all types are compared with ml_dtypes in tests/conformance/small_numbers_test.py.

namespace batchfs {
namespace small_number_test {

const SmallNumber& number(std::string_view name) {
  const SmallNumber* found = find_small_number(name);
  if (found == nullptr) throw Error(ErrorCode::internal, std::string(name));
  return *found;
}

TEST(SmallNumber, ValuesOfCodes) {
  EXPECT_EQ(number("int4").value(0xe), -2);
  EXPECT_EQ(number("int4").value(0x57), 7);  // higher bits are ignored
  EXPECT_EQ(number("uint2").value(0xff), 3);
  EXPECT_EQ(number("int2").value(2), -2);
  EXPECT_EQ(number("float4_e2m1fn").value(0x7), 6);
  EXPECT_EQ(number("float4_e2m1fn").value(0x9), -0.5);
  EXPECT_EQ(number("float6_e3m2fn").value(0x1f), 28);
  EXPECT_EQ(number("float8_e4m3fn").value(0x7e), 448);
  EXPECT_TRUE(std::isnan(number("float8_e4m3fn").value(0x7f)));
  EXPECT_EQ(number("float8_e4m3").value(0x78), INFINITY);
  EXPECT_EQ(number("float8_e5m2").value(0xfb), -57344);
  EXPECT_TRUE(std::isnan(number("float8_e5m2fnuz").value(0x80)));
  EXPECT_EQ(number("float8_e8m0fnu").value(0), 0x1p-127);
  EXPECT_TRUE(std::isnan(number("float8_e8m0fnu").value(0xff)));
  EXPECT_EQ(number("bfloat16").value(0x3fc0), 1.5);
  EXPECT_EQ(number("bfloat16").value(0x8001), -0x1p-133);
}

TEST(SmallNumber, EveryCodeIsExactInMemory) {
  for (const char* name : {"float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4",
                           "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
                           "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"}) {
    const SmallNumber& small = number(name);
    for (int code = 0; code < 256; ++code) {
      const auto stored = static_cast<std::byte>(code);
      std::byte out[4];
      small.decode({&stored, 1}, false, out);
      double got = 0;
      if (small.memory_bytes == 2) {
        _Float16 half;
        std::memcpy(&half, out, sizeof half);
        got = static_cast<double>(half);
      } else {
        float single;
        std::memcpy(&single, out, sizeof single);
        got = single;
      }
      const double value = small.value(static_cast<std::uint32_t>(code));
      EXPECT_TRUE(got == value || (std::isnan(got) && std::isnan(value))) << name << code;
    }
  }
}

TEST(SmallNumber, OfTwoBytesInEitherOrder) {
  const std::byte codes[] = {std::byte{0xc0}, std::byte{0x3f}, std::byte{0x00}, std::byte{0x80}};
  std::byte out[8];
  float values[2];
  number("bfloat16").decode(codes, false, out);
  std::memcpy(values, out, sizeof values);
  EXPECT_EQ(values[0], 1.5F);
  EXPECT_TRUE(std::signbit(values[1]));
  number("bfloat16").decode(std::span(codes).subspan(1, 2), true, out);
  std::memcpy(values, out, sizeof(float));
  EXPECT_EQ(values[0], 0.5F);
}

template <class T>
T fill(const char* name, Json json) {
  const std::vector<std::byte> bytes = number(name).parse_fill(JsonRef(json, "fill_value"));
  T value{};
  EXPECT_EQ(bytes.size(), sizeof value);
  std::memcpy(&value, bytes.data(), std::min(sizeof value, bytes.size()));
  return value;
}

std::string refused(const char* name, Json json) {
  try {
    number(name).parse_fill(JsonRef(json, "fill_value"));
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(SmallNumber, FillValuesAreRoundedToWhatCanBeStored) {
  EXPECT_EQ(fill<std::int8_t>("int4", -8), -8);
  EXPECT_EQ(fill<std::uint8_t>("uint2", 3), 3);
  EXPECT_EQ(fill<float>("bfloat16", 1.5), 1.5F);
  EXPECT_EQ(fill<float>("bfloat16", 0.1), 0.10009765625F);
  EXPECT_EQ(fill<float>("bfloat16", 1.00390625), 1.0F);  // a tie
  EXPECT_TRUE(std::isnan(fill<float>("bfloat16", "NaN")));
  EXPECT_EQ(fill<float>("bfloat16", "0xc040"), -3.0F);
  EXPECT_EQ(fill<float>("bfloat16", "-Infinity"), -INFINITY);
  EXPECT_EQ(static_cast<float>(fill<_Float16>("float8_e4m3", "0x38")), 1.0F);
  EXPECT_EQ(static_cast<float>(fill<_Float16>("float4_e2m1fn", 5.1)), 6.0F);
  EXPECT_EQ(fill<float>("float8_e8m0fnu", "0x80"), 2.0F);
}

TEST(SmallNumber, RefusesFillValuesThatAreNone) {
  EXPECT_EQ(refused("int4", 8), "fill_value: out of range for the data type");
  EXPECT_EQ(refused("uint2", -1), "fill_value: out of range for the data type");
  EXPECT_EQ(refused("int2", 0.5), "fill_value: not a whole number, as the data type needs");
  EXPECT_EQ(refused("float4_e2m1fn", "NaN"), "fill_value: out of range for the data type");
  EXPECT_EQ(refused("float8_e4m3fn", "Infinity"), "fill_value: out of range for the data type");
  EXPECT_EQ(refused("bfloat16", 1e39), "fill_value: out of range for the data type");
  EXPECT_EQ(refused("bfloat16", "0x7fc"),
            "fill_value: not the bits of a floating-point number of this size");
  EXPECT_EQ(refused("float8_e5m2", "0x7fc0"),
            "fill_value: not the bits of a floating-point number of this size");
}

TEST(SmallNumber, AreFoundByName) {
  EXPECT_EQ(find_small_number("float32"), nullptr);
  const Json object = {{"name", "int4"}};
  EXPECT_EQ(find_small_number(JsonRef(object, "data_type")), &number("int4"));
  EXPECT_EQ(number("int4").type(), make_type(Kind::signed_int, 1));
  EXPECT_EQ(number("float8_e5m2").type(), make_type(Kind::floating, 2));
  EXPECT_EQ(number("bfloat16").type(), float32());
  EXPECT_EQ(number("bfloat16").stored_bytes(), 2u);
}

}  // namespace small_number_test
}  // namespace batchfs
