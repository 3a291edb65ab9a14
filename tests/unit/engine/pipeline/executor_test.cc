#include "engine/pipeline/executor.h"

#include <atomic>
#include <future>
#include <vector>

#include <gtest/gtest.h>

namespace batchfs {
namespace {

TEST(Executor, RunsTheMostUrgentFirst) {
  std::promise<void> hold, begun;
  Executor executor(1);
  executor.post(0, [&] {
    begun.set_value();
    hold.get_future().wait();
  });
  begun.get_future().wait();
  std::vector<int> order;
  for (int urgency : {5, 1, 3, 1}) executor.post(urgency, [&order, urgency] { order.push_back(urgency); });
  hold.set_value();
  executor.stop();
  EXPECT_EQ(order, (std::vector<int>{1, 1, 3, 5}));
}

TEST(Executor, StopRunsWhatWasPostedAndRefusesMore) {
  Executor executor(2);
  std::atomic<int> ran{0};
  for (int i = 0; i < 1000; ++i)
    executor.post(i, [&] {
      if (++ran == 500) executor.post(0, [&] { ++ran; });
    });
  executor.stop();
  EXPECT_EQ(ran, 1001);
  executor.post(0, [&] { ++ran; });
  EXPECT_EQ(ran, 1001);
}

TEST(Executor, UsesItsThreadsAtOnce) {
  std::atomic<int> inside{0};
  std::promise<void> all;
  Executor executor(3);  // last: its threads use the others
  std::shared_future<void> released = all.get_future().share();
  for (int i = 0; i < 3; ++i)
    executor.post(0, [&, released] {
      if (++inside == 3) all.set_value();
      released.wait();
    });
  EXPECT_EQ(released.wait_for(std::chrono::seconds(20)), std::future_status::ready);
}

TEST(Executor, StoppingWaitsNoLongerThanItIsTold) {
  std::promise<void> hold;
  Executor executor(1);
  executor.post(0, [&hold] { hold.get_future().wait(); });
  EXPECT_FALSE(executor.stop(0.01));
  hold.set_value();
  EXPECT_TRUE(executor.stop(20));
}

}  // namespace
}  // namespace batchfs
