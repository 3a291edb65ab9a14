#include "engine/base/round_up.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace batchfs {
namespace round_up_test {

TEST(RoundUp, MultiplesStay) {
  static_assert(round_up<std::uint64_t>(0, 16) == 0);
  EXPECT_EQ(round_up<std::uint64_t>(1, 16), 16u);
  EXPECT_EQ(round_up<std::uint64_t>(16, 16), 16u);
  EXPECT_EQ(round_up<std::uint64_t>(17, 16), 32u);
  EXPECT_EQ(round_up<std::uint32_t>(10, 3), 12u);
}

}  // namespace round_up_test
}  // namespace batchfs
