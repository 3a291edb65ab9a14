#include "engine/store/timer_thread.h"

#include <atomic>
#include <chrono>
#include <future>

#include <gtest/gtest.h>

namespace batchfs {

namespace timer_thread_test {

std::int64_t in(std::chrono::milliseconds time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             (std::chrono::steady_clock::now() + time).time_since_epoch())
      .count();
}

TEST(TimerThread, RunsWorkInOrderOfTime) {
  std::vector<int> order;
  std::promise<void> end;
  TimerThread timers;
  const std::int64_t late = in(std::chrono::milliseconds(60)),
                     soon = in(std::chrono::milliseconds(20));
  timers.post(late, [&] {
    order.push_back(3);
    end.set_value();
  });
  timers.post(soon, [&] { order.push_back(1); });
  timers.post(soon, [&] { order.push_back(2); });
  end.get_future().get();
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
  EXPECT_GE(in(std::chrono::milliseconds(0)), late);
}

TEST(TimerThread, WorkMayPostWork) {
  TimerThread timers;
  std::promise<int> end;
  timers.post(0, [&] { timers.post(0, [&] { end.set_value(7); }); });
  EXPECT_EQ(end.get_future().get(), 7);
}

TEST(TimerThread, StopDropsTheRest) {
  const auto held = std::make_shared<int>(0);
  std::atomic<bool> ran{false};
  TimerThread timers;
  timers.post(in(std::chrono::hours(1)), [&ran, held] { ran = true; });
  timers.stop();
  EXPECT_EQ(held.use_count(), 1);
  timers.post(0, [&] { ran = true; });
  timers.stop();
  EXPECT_FALSE(ran);
}

}  // namespace timer_thread_test

}  // namespace batchfs
