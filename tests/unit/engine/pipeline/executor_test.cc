#include "engine/pipeline/executor.h"

#include <atomic>
#include <future>
#include <vector>

#include <gtest/gtest.h>

namespace batchfs {
namespace {

TEST(Executor, RunsTheMostUrgentFirst) {
  Executor executor(1);
  std::promise<void> hold, begun, done;
  executor.post(0, [&] {
    begun.set_value();
    hold.get_future().wait();
  });
  begun.get_future().wait();
  std::vector<int> order;
  for (int urgency : {5, 1, 3, 1}) executor.post(urgency, [&order, urgency] { order.push_back(urgency); });
  executor.post(9, [&] { done.set_value(); });
  hold.set_value();
  done.get_future().wait();
  EXPECT_EQ(order, (std::vector<int>{1, 1, 3, 5}));
}

TEST(Executor, StopDropsWhatHasNotBegunAndWaitsForTheRest) {
  Executor executor(2);
  std::atomic<int> ran{0};
  for (int i = 0; i < 1000; ++i) executor.post(i, [&] { ++ran; });
  executor.stop();
  const int after = ran;
  executor.post(0, [&] { ++ran; });
  EXPECT_EQ(ran, after);
  EXPECT_LE(after, 1000);
}

TEST(Executor, UsesItsThreadsAtOnce) {
  Executor executor(3);
  std::atomic<int> inside{0};
  std::promise<void> all;
  std::shared_future<void> released = all.get_future().share();
  for (int i = 0; i < 3; ++i)
    executor.post(0, [&, released] {
      if (++inside == 3) all.set_value();
      released.wait();
    });
  EXPECT_EQ(released.wait_for(std::chrono::seconds(20)), std::future_status::ready);
}

}  // namespace
}  // namespace batchfs
