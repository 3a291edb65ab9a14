#include "engine/pipeline/waits/idle_timer.h"

#include <gtest/gtest.h>

#include "tests/unit/eventually.h"

namespace batchfs {
namespace idle_timer_test {

constexpr std::uint64_t kMillisecond = 1'000'000, kHour = 3'600'000'000'000;

TEST(IdleTimer, IsOverOnceAfterEachTouch) {
  std::atomic<int> over{0};
  IdleTimer* self = nullptr;
  Ticker ticker([&] {
    if (self->is_over(false)) ++over;
  });
  IdleTimer timer(4 * kMillisecond, ticker);
  self = &timer;
  EXPECT_FALSE(timer.is_over(false)) << "there was no reader yet";
  for (int i = 1; i <= 2; ++i) {
    timer.touch();
    EXPECT_TRUE(eventually([&] { return over == i; }));
    EXPECT_FALSE(timer.is_over(false));
  }
}

TEST(IdleTimer, IsNotOverWhileAReaderWaitsOrHasJustCome) {
  Ticker ticker([] {});
  IdleTimer timer(kHour, ticker);
  timer.touch();
  EXPECT_FALSE(timer.is_over(false));
  IdleTimer short_timer(1, ticker);
  short_timer.touch();
  EXPECT_FALSE(short_timer.is_over(true));
  EXPECT_TRUE(eventually([&] { return short_timer.is_over(false); }));
}

TEST(IdleTimer, CanBeSwitchedOff) {
  Ticker ticker([] {});
  IdleTimer timer(UINT64_MAX, ticker);
  timer.touch();
  EXPECT_FALSE(timer.is_over(false));
}

}  // namespace idle_timer_test
}  // namespace batchfs
