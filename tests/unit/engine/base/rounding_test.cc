#include "engine/base/rounding.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace batchfs {
namespace rounding_test {

TEST(Rounding, MultiplesStay) {
  static_assert(round_up<std::uint64_t>(0, 16) == 0);
  EXPECT_EQ(round_up<std::uint64_t>(1, 16), 16u);
  EXPECT_EQ(round_up<std::uint64_t>(16, 16), 16u);
  EXPECT_EQ(round_up<std::uint64_t>(17, 16), 32u);
  EXPECT_EQ(round_up<std::uint32_t>(10, 3), 12u);
}

TEST(Rounding, DivisionGoesDown) {
  static_assert(floor_divide(7, 3) == 2);
  EXPECT_EQ(floor_divide(-6, 3), -2);
  EXPECT_EQ(floor_divide(-7, 3), -3);
  EXPECT_EQ(floor_divide(-1, 3), -1);
  EXPECT_EQ(floor_divide<std::int64_t>(INT64_MIN, 2), INT64_MIN / 2);
}

}  // namespace rounding_test
}  // namespace batchfs
