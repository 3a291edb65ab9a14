#include "engine/pipeline/waits/ticker.h"

#include <atomic>

#include <gtest/gtest.h>

#include "tests/unit/eventually.h"

namespace batchfs {
namespace ticker_test {

constexpr std::uint64_t kMillisecond = 1'000'000, kHour = 3'600'000'000'000;

TEST(Ticker, TicksOnceForEachTimeItIsArmed) {
  std::atomic<int> ticks{0};
  Ticker ticker([&] { ++ticks; });
  for (int i = 1; i <= 3; ++i) {
    ticker.arm(kMillisecond);
    EXPECT_TRUE(eventually([&] { return ticks == i; })) << ticks;
  }
}

TEST(Ticker, TheSoonerTickCounts) {
  std::atomic<int> ticks{0};
  Ticker ticker([&] { ++ticks; });
  ticker.arm(kHour);
  ticker.arm(kMillisecond);
  EXPECT_TRUE(eventually([&] { return ticks == 1; }));
}

TEST(Ticker, ATickThatIsSoonerAlreadyServesLaterOnes) {
  std::atomic<int> ticks{0};
  Ticker ticker([&] { ++ticks; });
  ticker.arm(20 * kMillisecond);
  for (int i = 0; i < 100; ++i) ticker.arm(30 * kMillisecond);
  EXPECT_TRUE(eventually([&] { return ticks > 0; }));
  ticker.stop();
  EXPECT_EQ(ticks, 1);
}

TEST(Ticker, ATickMayArmTheNext) {
  std::atomic<int> ticks{0};
  Ticker* self = nullptr;
  Ticker ticker([&] {
    if (++ticks < 5) self->arm(kMillisecond);
  });
  self = &ticker;
  ticker.arm(kMillisecond);
  EXPECT_TRUE(eventually([&] { return ticks == 5; }));
}

TEST(Ticker, NoneComesAfterItsStop) {
  std::atomic<int> ticks{0};
  Ticker ticker([&] { ++ticks; });
  ticker.stop();
  ticker.arm(0);
  ticker.stop();
  EXPECT_EQ(ticks, 0);
}

}  // namespace ticker_test
}  // namespace batchfs
