#include "engine/pipeline/executor.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/sanitizers.h"
#include "tests/unit/eventually.h"

namespace batchfs {
namespace executor_test {

thread_local bool counts_yields = false;
std::atomic<int> yields{0};

}  // namespace executor_test
}  // namespace batchfs

/// Takes the place of the C library's, also for oneTBB.
extern "C" int sched_yield() noexcept {
  if (batchfs::executor_test::counts_yields) ++batchfs::executor_test::yields;
  return static_cast<int>(::syscall(SYS_sched_yield));
}

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

std::size_t thread_count() {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                    std::filesystem::directory_iterator()));
}

TEST(Executor, WorkersAreUsedAgainByTheNextOne) {
  std::size_t threads = 0;
  for (int i = 0; i < 10; ++i) {
    Executor executor(4);
    EXPECT_EQ(running_at_once(executor, 4), 4);
    executor.stop();
    if (i == 0) threads = thread_count();
    EXPECT_EQ(thread_count(), threads);
  }
}

TEST(Executor, ThreadsOfItsOwnEndWithIt) {
  {
    Executor pooled(1);  // has a worker, which stays
    pooled.stop();
  }
  const std::size_t before = thread_count();
  {
    Executor executor(3, Executor::Threads::own);
    EXPECT_EQ(thread_count(), before + 1);
    EXPECT_EQ(running_at_once(executor, 3), 3);
    EXPECT_EQ(thread_count(), before + 3);
  }
  EXPECT_TRUE(eventually([&] { return thread_count() == before; }));  // later than join()
}

#if !BATCHFS_THREAD_SANITIZER  // has no threads of forked processes

TEST(Executor, AForkedProcessHasThreadsOfItsOwn) {
  Executor used(2);
  EXPECT_EQ(running_at_once(used, 2), 2);
  const pid_t child = ::fork();
  if (child == 0) {
    for (int i = 0; i < 2; ++i) {
      Executor executor(3), other(2);
      Executor sharing(executor, 3);
      if (running_at_once(executor, 3) != 3 || running_at_once(sharing, 3) != 3 ||
          running_at_once(other, 2) != 2)
        _exit(1);
    }
    _exit(eventually([] { return thread_count() == 1; }) ? 0 : 2);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(running_at_once(used, 2), 2);
}

#endif

TEST(Executor, WorkersThatOthersStartYieldNoMore) {
  // oneTBB starts a worker from the thread that posts, and further workers from workers.
  const int own = getpriority(PRIO_PROCESS, 0);
  Executor executor(4);
  std::atomic<int> inside{0};
  std::mutex mutex;
  std::vector<int> priorities;
  const std::function<void()> note = [&] {
    {
      const std::lock_guard lock(mutex);
      priorities.push_back(getpriority(PRIO_PROCESS, 0));
    }
    if (++inside <= 4) executor.post(0, note);
    eventually([&] { return inside >= 4; });
  };
  executor.post(0, note);
  executor.stop();
  EXPECT_EQ(priorities, std::vector<int>(5, std::min(own + 5, 19)));
}

TEST(Executor, AWorkerWithoutWorkSleepsAndDoesNotSpin) {
  Executor executor(2);
  std::promise<int> started;
  executor.post(0, [&] {
    counts_yields = true;
    yields = 0;
    started.set_value(gettid());
  });
  const std::string status =
      "/proc/self/task/" + std::to_string(started.get_future().get()) + "/stat";
  EXPECT_TRUE(eventually([&] {  // its state follows its name, which is in brackets
    std::ifstream file(status);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    return text.substr(text.rfind(')') + 2, 1) == "S";
  }));
  EXPECT_EQ(yields, 0);
}

TEST(Executor, WorkersSleepFromOneExecutorToTheNext) {
  for (int i = 0; i < 10; ++i) {
    Executor executor(1);
    executor.post(0, [] {
      if (!std::exchange(counts_yields, true)) yields = 0;
    });
    executor.stop();
  }
  EXPECT_EQ(yields, 0);
}

TEST(Executor, SignalsAreForTheOtherThreads) {
  std::promise<sigset_t> of_worker;
  Executor executor(2);
  executor.post(0, [&] {
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    of_worker.set_value(blocked);
  });
  const sigset_t blocked = of_worker.get_future().get();
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD})
    EXPECT_TRUE(sigismember(&blocked, signal)) << signal;
  for (const int fault : {SIGSEGV, SIGBUS}) EXPECT_FALSE(sigismember(&blocked, fault)) << fault;
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

/// Whether an item that is not urgent gets a worker.
bool runs_soon(Executor& executor) {
  const auto ran = std::make_shared<std::promise<void>>();
  executor.post(kPrefetch, [ran] { ran->set_value(); });
  return ran->get_future().wait_for(std::chrono::seconds(20)) == std::future_status::ready;
}

TEST(Executor, ManyShareTheWorkersOfOne) {
  constexpr int kWorkers = 4;
  std::mutex mutex;
  std::condition_variable changed;
  int inside = 0, most = 0, ran = 0;
  Executor host(kWorkers);
  std::vector<std::unique_ptr<Executor>> executors;
  for (int i = 0; i < 8; ++i) executors.push_back(std::make_unique<Executor>(host, kWorkers));
  for (int item = 0; item < 8; ++item)
    for (const auto& executor : executors)
      executor->post(item, [&] {
        std::unique_lock lock(mutex);
        most = std::max(most, ++inside);
        changed.notify_all();
        changed.wait(lock, [&] { return most >= kWorkers; });
        --inside;
        ++ran;
      });
  executors.clear();
  EXPECT_EQ(ran, 64);
  EXPECT_EQ(most, kWorkers);
}

TEST(Executor, OneThatSharesWorkersRunsNoMoreThanItsOwnThreads) {
  Executor host(4);
  EXPECT_EQ(Executor(host, 9).threads(), 4);
  Executor small(host, 1);
  std::atomic<int> inside{0};
  std::atomic<bool> together{false};
  for (int i = 0; i < 1000; ++i)
    small.post(0, [&] {
      if (++inside > 1) together = true;
      --inside;
    });
  small.stop();
  EXPECT_FALSE(together);
}

TEST(Executor, OnesThatAlwaysHaveWorkKeepNobodyWaiting) {
  std::atomic<bool> over{false};
  Executor host(2);
  std::vector<std::unique_ptr<Executor>> busy;
  std::vector<std::function<void()>> again(8);
  for (std::function<void()>& each : again) {
    Executor& executor = *busy.emplace_back(std::make_unique<Executor>(host, 2));
    each = [&] {
      if (!over) executor.post(kReaderWaits, each);
    };
    for (int i = 0; i < 3; ++i) executor.post(kReaderWaits, each);
  }
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(runs_soon(host));
  over = true;
  busy.clear();
}

TEST(Executor, WorkThatHangsHoldsOneWorkerOfThoseThatShare) {
  std::promise<void> hold, begun;
  const std::shared_future<void> released = hold.get_future().share();
  Executor host(2);
  Executor sharing(host, 2);
  sharing.post(0, [&begun, released] {
    begun.set_value();
    released.wait();
  });
  begun.get_future().wait();
  for (Executor* executor : {&host, &sharing}) EXPECT_TRUE(runs_soon(*executor));
  hold.set_value();
}

TEST(Executor, WorkThatIsWithdrawnDoesNotRunAndHoldsNothing) {
  Executor executor(1);
  std::promise<void> hold, begun;
  executor.post(kReaderWaits, [&] {
    begun.set_value();
    hold.get_future().wait();
  });
  begun.get_future().wait();
  const auto held = std::make_shared<int>();
  std::atomic<int> runs{0};
  const auto run = [held, &runs] { ++runs; };
  const auto first = executor.post(kPrefetch, run), second = executor.post(kPrefetch, run);
  const long both = held.use_count();
  executor.withdraw(first);
  executor.withdraw(first);
  executor.withdraw({});
  EXPECT_EQ(held.use_count(), both - 1);
  hold.set_value();
  executor.stop();
  EXPECT_EQ(runs, 1);
  executor.withdraw(second);  // has run
  EXPECT_EQ(executor.post(kPrefetch, run), Executor::Ticket());
}

#if !BATCHFS_ADDRESS_SANITIZER && !BATCHFS_THREAD_SANITIZER  // they need the address space

/// Leaves the process room for the stacks of a few threads.
void limit_address_space() {
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t limit = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (64 << 20);
  const rlimit limits{limit, limit};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limits), 0);
}

TEST(ExecutorDeathTest, TakesAsManyThreadsAsTheSystemStarts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // without workers of other tests
  for (const auto kind : {Executor::Threads::pooled, Executor::Threads::own})
    EXPECT_EXIT(
        {
          limit_address_space();
          Executor executor(64, kind);
          const int running = running_at_once(executor, 64);
          executor.stop();
          std::fprintf(stderr, "%d of 64\n", running);
          _exit(running >= 1 && running < 64 ? 0 : 1);
        },
        testing::ExitedWithCode(0), "");
}

#endif

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
