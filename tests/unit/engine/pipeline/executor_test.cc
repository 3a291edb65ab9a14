#include "engine/pipeline/executor.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "tests/unit/eventually.h"

namespace batchfs {
namespace executor_test {

TEST(Executor, RunsTheMostUrgentFirst) {
  std::promise<void> hold, begun;
  Executor executor(1);
  executor.post(0, [&] {
    begun.set_value();
    hold.get_future().wait();
  });
  begun.get_future().wait();
  std::vector<int> order;
  for (int urgency : {5, 1, 3, 1})
    executor.post(urgency, [&order, urgency] { order.push_back(urgency); });
  hold.set_value();
  executor.stop();
  EXPECT_EQ(order, (std::vector<int>{1, 1, 3, 5}));
}

TEST(Executor, ItsThreadsYieldToOthersOfTheProcess) {
  const int own = getpriority(PRIO_PROCESS, 0);
  std::promise<int> of_worker;
  Executor executor(1);
  executor.post(0, [&] { of_worker.set_value(getpriority(PRIO_PROCESS, 0)); });
  EXPECT_EQ(of_worker.get_future().get(), std::min(own + 5, 19));
  EXPECT_EQ(getpriority(PRIO_PROCESS, 0), own);
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

/// Posts a task for each thread and returns how many ran at the same time, `expected` at most.
int running_at_once(Executor& executor, int expected) {
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    int inside = 0;
    bool released = false;
  };
  const auto shared = std::make_shared<Shared>();
  for (int i = 0; i < expected; ++i)
    executor.post(0, [shared] {
      std::unique_lock lock(shared->mutex);
      ++shared->inside;
      shared->changed.notify_all();
      shared->changed.wait(lock, [&] { return shared->released; });
    });
  std::unique_lock lock(shared->mutex);
  shared->changed.wait_for(lock, std::chrono::seconds(5),
                           [&] { return shared->inside == expected; });
  shared->released = true;
  shared->changed.notify_all();
  return shared->inside;
}

TEST(Executor, AnIdleSmallerOneTakesNoThreads) {
  Executor large(8);
  EXPECT_EQ(running_at_once(large, 8), 8);
  {
    Executor small(2);
    EXPECT_EQ(running_at_once(large, 8), 8);
    EXPECT_EQ(running_at_once(small, 2), 2);
    EXPECT_EQ(running_at_once(large, 8), 8);
  }
  EXPECT_EQ(running_at_once(large, 8), 8);
}

TEST(Executor, BusyOnesTakeNoThreadsFromEachOther) {
  Executor one(4), other(4);
  std::promise<void> hold;
  const std::shared_future<void> released = hold.get_future().share();
  std::atomic<int> inside{0};
  for (int i = 0; i < 4; ++i)
    one.post(0, [&inside, released] {
      ++inside;
      released.wait();
    });
  EXPECT_TRUE(eventually([&] { return inside == 4; }));
  EXPECT_EQ(running_at_once(other, 4), 4);
  hold.set_value();
  one.stop();
}

TEST(Executor, StoppingWaitsNoLongerThanItIsTold) {
  std::promise<void> hold;
  Executor executor(1);
  executor.post(0, [&hold] { hold.get_future().wait(); });
  EXPECT_FALSE(executor.stop(0.01));
  hold.set_value();
  EXPECT_TRUE(executor.stop(20));
}

}  // namespace executor_test
}  // namespace batchfs
