#include "tools/page/axis_ticks.h"

#include <gmock/gmock.h>

namespace batchfs {
namespace axis_ticks_test {

using testing::ElementsAre;

TEST(AxisTicks, AreRoundAndBeginAtZero) {
  EXPECT_THAT(ticks_to(7.3, 4), ElementsAre(0, 2, 4, 6, 8));
  EXPECT_THAT(ticks_to(8, 4), ElementsAre(0, 2, 4, 6, 8));
  EXPECT_THAT(ticks_to(0.9, 2), ElementsAre(0, 0.5, 1));
  EXPECT_THAT(ticks_to(0, 4), ElementsAre(0, 1));
  EXPECT_THAT(ticks_to(2, 4, true), ElementsAre(0, 1, 2));
  EXPECT_DOUBLE_EQ(round_step(1300, 4), 500);
}

TEST(AxisTicks, OfBytesAreRoundInTheirUnit) {
  EXPECT_THAT(byte_ticks_to(3.5 * 1048576, 4),
              ElementsAre(0, 1048576, 2 * 1048576, 3 * 1048576, 4 * 1048576));
  EXPECT_EQ(byte_tick_text(2 * 1048576), "2 MB");
  EXPECT_EQ(byte_tick_text(0), "0");
  EXPECT_EQ(byte_tick_text(512), "512 B");
}

TEST(AxisTicks, OfCountsAreShort) {
  EXPECT_EQ(count_tick_text(0), "0");
  EXPECT_EQ(count_tick_text(5000), "5000");
  EXPECT_EQ(count_tick_text(20000), "20k");
  EXPECT_EQ(count_tick_text(500000), "500k");
  EXPECT_EQ(count_tick_text(2500000), "2.5M");
  EXPECT_EQ(count_tick_text(3e9), "3G");
  EXPECT_EQ(count_tick_text(2e12), "2000G");
}

TEST(AxisTicks, BetweenTwoTimes) {
  EXPECT_THAT(ticks_between(12.3, 18.1, 3), ElementsAre(14, 16, 18));
  EXPECT_THAT(ticks_between(0, 60, 6), ElementsAre(0, 10, 20, 30, 40, 50, 60));
  EXPECT_LE(ticks_between(0, 1e-6, 5).size(), 6u);
  EXPECT_EQ(tick_text(ticks_between(0, 14, 6).front()), "0");  // not "-0"
}

TEST(AxisTicks, OddRangesEnd) {
  for (const double odd : {-1.0, 0.0, 1e300, 1e-300}) {
    EXPECT_LE(ticks_to(odd, 4).size(), 7u) << odd;
    EXPECT_LE(ticks_between(0, odd, 4).size(), 7u) << odd;
  }
}

}  // namespace axis_ticks_test
}  // namespace batchfs
