#include "engine/write/prediction/value_cast.h"

#include <bit>
#include <vector>

#include <gtest/gtest.h>

namespace batchfs {
namespace value_cast_test {

DataType type_of(const char* name) {
  return std::string(name) == "bfloat16" ? bfloat16() : parse_numpy_type(name);
}

// numpy.can_cast(a, b, "same_kind") of numpy 2.
TEST(ValueCast, AllowsWhatNumpyAllows) {
  const auto can = [](const char* from, const char* to) {
    return can_cast(type_of(from), type_of(to));
  };
  EXPECT_TRUE(can("float64", "float32") && can("float32", "float16") && can("int64", "float16"));
  EXPECT_TRUE(can("int64", "int8") && can("uint64", "int8") && can("bool", "uint8"));
  EXPECT_TRUE(can("bfloat16", "float32") && can("bool", "bool"));
  EXPECT_FALSE(can("float32", "int64") || can("int8", "uint8") || can("uint8", "bool"));
  EXPECT_FALSE(can("complex64", "float32") || can("datetime64[ns]", "int64") ||
               can("<U4", "float32"));
}

template <class From, class To>
std::vector<To> cast(const char* from, const char* to, const std::vector<From>& values,
                     const CastScale& scale = {}) {
  std::vector<To> result(values.size());
  cast_row(type_of(from), type_of(to), scale.multiply != nullptr)(
      static_cast<std::int64_t>(values.size()), reinterpret_cast<const std::byte*>(values.data()),
      sizeof(From), scale, reinterpret_cast<std::byte*>(result.data()));
  return result;
}

TEST(ValueCast, RoundsToTheNearest) {
  EXPECT_EQ((cast<double, float>("float64", "float32", {0.1, -1e300})),
            (std::vector<float>{0.1f, -INFINITY}));
  EXPECT_EQ((cast<std::int64_t, double>("int64", "float64", {-3, 1})),
            (std::vector<double>{-3, 1}));
  EXPECT_EQ((cast<std::uint64_t, std::int16_t>("uint64", "int16", {65535, 7})),
            (std::vector<std::int16_t>{-1, 7}));
  EXPECT_EQ((cast<std::uint16_t, float>("bfloat16", "float32", {0x3fc0, 0xc000})),
            (std::vector<float>{1.5f, -2.f}));
  const std::vector<_Float16> half = cast<float, _Float16>("float32", "float16", {0.1f, 65504.f});
  EXPECT_EQ(std::bit_cast<std::uint16_t>(half[0]), 0x2e66);  // numpy.float16(0.1)
  EXPECT_EQ(static_cast<float>(half[1]), 65504.f);
  EXPECT_EQ((cast<std::uint8_t, std::uint8_t>("bool", "bool", {1, 0})),
            (std::vector<std::uint8_t>{1, 0}));
}

TEST(ValueCast, GoesThroughStridesOfAnySign) {
  const std::vector<float> values{1, 2, 3, 4, 5};
  std::vector<double> result(3);
  cast_row(float32(), float64(), false)(3, reinterpret_cast<const std::byte*>(&values[4]), -8, {},
                                        reinterpret_cast<std::byte*>(result.data()));
  EXPECT_EQ(result, (std::vector<double>{5, 3, 1}));
  std::vector<float> same(2);
  cast_row(float32(), float32(), false)(2, reinterpret_cast<const std::byte*>(values.data()), 12,
                                        {}, reinterpret_cast<std::byte*>(same.data()));
  EXPECT_EQ(same, (std::vector<float>{1, 4}));
}

TEST(ValueCast, UndoesANormalizationInTheTypeOfTheValues) {
  const std::vector<double> multiply{0.1, 3}, add{1, 0.7};
  const CastScale by_position{multiply.data(), add.data(), 1};
  // numpy: values * float32(multiply) + float32(add), each rounded to float32.
  const float product = 0.3f * 0.1f;
  EXPECT_EQ((cast<float, float>("float32", "float32", {0.3f, 2.f}, by_position)),
            (std::vector<float>{product + 1.f, 6.f + 0.7f}));
  const CastScale same{multiply.data(), add.data(), 0};
  EXPECT_EQ((cast<double, double>("float64", "float64", {0.3, 2}, same)),
            (std::vector<double>{0.3 * 0.1 + 1, 2 * 0.1 + 1}));
  EXPECT_EQ((cast<std::int32_t, double>("int32", "float64", {3}, same)),
            (std::vector<double>{3 * 0.1 + 1}));
}

TEST(ValueCast, TypesThatAreNoNumbersAreRefused) {
  EXPECT_THROW(cast_row(parse_numpy_type("complex64"), float32(), false), Error);
  EXPECT_THROW(cast_row(float32(), parse_numpy_type("<U4"), false), Error);
  EXPECT_THROW(cast_row(float32(), bfloat16(), false), Error);
}

}  // namespace value_cast_test
}  // namespace batchfs
