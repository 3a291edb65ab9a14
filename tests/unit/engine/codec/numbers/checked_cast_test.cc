#include "engine/codec/numbers/checked_cast.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace checked_cast_test {

constexpr CastRules rule(Rounding rounding, OutOfRange mode = OutOfRange::error) {
  return {rounding, mode};
}
constexpr CastRules kClamp = rule(Rounding::nearest_even, OutOfRange::clamp);
constexpr CastRules kWrap = rule(Rounding::nearest_even, OutOfRange::wrap);

TEST(CheckedCast, KnowsWhichTypesHoldAllValuesOfOthers) {
  EXPECT_TRUE((is_exact_cast<std::int64_t, std::uint32_t>()));
  EXPECT_FALSE((is_exact_cast<std::uint64_t, std::int8_t>()));
  EXPECT_FALSE((is_exact_cast<std::int32_t, std::uint32_t>()));
  EXPECT_TRUE((is_exact_cast<float, std::int16_t>()));
  EXPECT_FALSE((is_exact_cast<float, std::int32_t>()));
  EXPECT_TRUE((is_exact_cast<double, std::uint32_t>()));
  EXPECT_FALSE((is_exact_cast<double, std::int64_t>()));
  EXPECT_TRUE((is_exact_cast<_Float16, std::uint8_t>()));
  EXPECT_FALSE((is_exact_cast<_Float16, std::int16_t>()));
  EXPECT_TRUE((is_exact_cast<float, _Float16>()));
  EXPECT_FALSE((is_exact_cast<_Float16, float>()));
  EXPECT_FALSE((is_exact_cast<std::int64_t, _Float16>()));
}

TEST(CheckedCast, IntegersThatDoNotFit) {
  EXPECT_EQ((checked_cast<std::uint8_t>(std::int16_t{300}, {})), std::nullopt);
  EXPECT_EQ((checked_cast<std::uint8_t>(std::int16_t{-1}, kClamp)), 0);
  EXPECT_EQ((checked_cast<std::uint8_t>(std::int16_t{300}, kClamp)), 255);
  EXPECT_EQ((checked_cast<std::int8_t>(std::int16_t{128}, kWrap)), -128);
  EXPECT_EQ((checked_cast<std::int64_t>(UINT64_MAX, {})), std::nullopt);
  EXPECT_EQ((checked_cast<std::int64_t>(UINT64_MAX, kClamp)), INT64_MAX);
  EXPECT_EQ((checked_cast<std::uint64_t>(std::int8_t{-1}, kWrap)), UINT64_MAX);
}

TEST(CheckedCast, FloatsToIntegersRoundFirst) {
  struct Case {
    Rounding rounding;
    int of_low, of_tie, of_negative_tie;  // 1.2, 2.5, -2.5
  };
  for (const Case& c :
       {Case{Rounding::nearest_even, 1, 2, -2}, Case{Rounding::towards_zero, 1, 2, -2},
        Case{Rounding::towards_positive, 2, 3, -2}, Case{Rounding::towards_negative, 1, 2, -3},
        Case{Rounding::nearest_away, 1, 3, -3}}) {
    EXPECT_EQ(checked_cast<std::int8_t>(1.2, rule(c.rounding)), c.of_low);
    EXPECT_EQ(checked_cast<std::int8_t>(2.5, rule(c.rounding)), c.of_tie);
    EXPECT_EQ(checked_cast<std::int8_t>(-2.5F, rule(c.rounding)), c.of_negative_tie);
  }
  EXPECT_EQ(checked_cast<std::uint8_t>(255.4, {}), 255);
  EXPECT_EQ(checked_cast<std::uint8_t>(-0.4, {}), 0);
}

TEST(CheckedCast, TheEndsOfTheRangesAreExact) {
  EXPECT_EQ(checked_cast<std::int64_t>(0x1p63, {}), std::nullopt);
  EXPECT_EQ(checked_cast<std::int64_t>(0x1p63, kClamp), INT64_MAX);
  EXPECT_EQ(checked_cast<std::int64_t>(-0x1p63, {}), INT64_MIN);
  EXPECT_EQ(checked_cast<std::uint64_t>(0x1p64, {}), std::nullopt);
  EXPECT_EQ(checked_cast<std::uint64_t>(0x1p63F, {}), UINT64_C(1) << 63);
  EXPECT_EQ(checked_cast<std::int32_t>(0x1p31F, {}), std::nullopt);
  EXPECT_EQ(checked_cast<std::uint8_t>(255.5, {}), std::nullopt);
}

TEST(CheckedCast, WrappingIsModuloTheRange) {
  EXPECT_EQ(checked_cast<std::uint8_t>(300.7, kWrap), 45);
  EXPECT_EQ(checked_cast<std::uint8_t>(-1.0, kWrap), 255);
  EXPECT_EQ(checked_cast<std::int16_t>(32768.0F, kWrap), -32768);
  // int(1e30) % 2**64, int(-5e9) % 2**32
  EXPECT_EQ(checked_cast<std::int64_t>(1e30, kWrap), 5076964154930102272);
  EXPECT_EQ(checked_cast<std::uint32_t>(-5e9, kWrap), 3589934592);
}

TEST(CheckedCast, NoIntegerIsNanOrInfinite) {
  for (const CastRules rules : {CastRules{}, kClamp, kWrap}) {
    EXPECT_EQ(checked_cast<std::int8_t>(std::numeric_limits<double>::quiet_NaN(), rules),
              std::nullopt);
    EXPECT_EQ(checked_cast<std::int8_t>(std::numeric_limits<float>::infinity(), rules),
              std::nullopt);
  }
}

TEST(CheckedCast, FloatsBecomeNarrower) {
  auto half = [](double value, CastRules rules) {
    const auto got = checked_cast<_Float16>(value, rules);
    return got ? static_cast<double>(*got) : -1;
  };
  EXPECT_EQ(half(65519.0, {}), 65504);
  EXPECT_EQ(half(65520.0, {}), -1);
  EXPECT_EQ(half(65520.0, kClamp), std::numeric_limits<double>::infinity());
  EXPECT_EQ(half(1e6, rule(Rounding::towards_zero)), 65504);
  EXPECT_EQ(half(65505.0, rule(Rounding::towards_positive)), -1);
  EXPECT_EQ(half(std::numeric_limits<double>::infinity(), {}),
            std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(half(std::numeric_limits<double>::quiet_NaN(), {})));
  // Between 2048 and 4096 the step is 2: 2049 is a tie.
  EXPECT_EQ(half(2049, {}), 2048);
  EXPECT_EQ(half(2049, rule(Rounding::nearest_away)), 2050);
  EXPECT_EQ(half(-2049, rule(Rounding::nearest_away)), -2050);
  EXPECT_EQ(half(2051, {}), 2052);
  EXPECT_EQ(half(2051, rule(Rounding::towards_negative)), 2050);
  EXPECT_EQ(half(-2051, rule(Rounding::towards_positive)), -2050);
  EXPECT_EQ(half(-2051, rule(Rounding::towards_negative)), -2052);
  // The lowest float16 is 2**-24.
  EXPECT_EQ(half(1e-300, rule(Rounding::towards_positive)), 0x1p-24);
  EXPECT_EQ(half(-1e-300, rule(Rounding::towards_negative)), -0x1p-24);
  EXPECT_EQ(half(1e-300, {}), 0);
}

TEST(CheckedCast, IntegersThatFloatsDoNotHold) {
  constexpr std::int64_t kOdd = (INT64_C(1) << 53) + 1;
  EXPECT_EQ(checked_cast<double>(kOdd, {}), 0x1p53);
  EXPECT_EQ(checked_cast<double>(kOdd, rule(Rounding::towards_positive)), 0x1p53 + 2);
  EXPECT_EQ(checked_cast<double>(-kOdd, rule(Rounding::towards_zero)), -0x1p53);
  EXPECT_EQ(checked_cast<double>(-kOdd, rule(Rounding::nearest_away)), -0x1p53 - 2);
  EXPECT_EQ(checked_cast<float>(UINT64_MAX, {}), 0x1p64F);
  EXPECT_EQ(checked_cast<float>(UINT64_MAX, rule(Rounding::towards_zero)), 0x1.fffffep63F);
  EXPECT_EQ(checked_cast<_Float16>(70000, {}), std::nullopt);
  EXPECT_EQ(static_cast<float>(*checked_cast<_Float16>(-70000, kClamp)),
            -std::numeric_limits<float>::infinity());
}

}  // namespace checked_cast_test
}  // namespace batchfs
