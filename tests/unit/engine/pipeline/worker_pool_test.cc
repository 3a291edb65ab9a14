#include "engine/pipeline/worker_pool.h"

#include <atomic>
#include <cerrno>
#include <future>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/sanitizers.h"
#include "tests/unit/eventually.h"

#if !BATCHFS_ADDRESS_SANITIZER && !BATCHFS_THREAD_SANITIZER  // they have their own
#define BATCHFS_REFUSES_THREADS 1

namespace batchfs {
namespace worker_pool_test {

std::atomic<int> started_before_refusals{-1};  // -1: none is refused

}  // namespace worker_pool_test
}  // namespace batchfs

/// Takes the place of the C library's, also for oneTBB.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*body)(void*), void* argument) noexcept {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(::dlsym(RTLD_NEXT, "pthread_create"));
  using batchfs::worker_pool_test::started_before_refusals;
  if (started_before_refusals >= 0 && started_before_refusals-- == 0) {
    started_before_refusals = 0;
    return EAGAIN;
  }
  return create(thread, attributes, body, argument);
}
#endif

namespace batchfs {
namespace worker_pool_test {

/// The thread of a job that has ended.
pid_t thread_of_job(WorkerPool& pool) {
  pid_t thread = 0;
  std::promise<void> ended;
  EXPECT_TRUE(pool.run([&] { thread = ::gettid(); }, [&] { ended.set_value(); }));
  ended.get_future().wait();
  return thread;
}

TEST(WorkerPool, AJobRunsOnAnotherThreadThanItsCaller) {
  EXPECT_NE(thread_of_job(*WorkerPool::of_process()), ::gettid());
}

TEST(WorkerPool, AWorkerIsFreeWhenItsJobHasEnded) {
  WorkerPool& pool = *WorkerPool::of_process();
  std::promise<void> hold, ended;
  std::promise<pid_t> held;
  ASSERT_TRUE(pool.run(
      [&] {
        held.set_value(::gettid());
        hold.get_future().wait();
      },
      [&] { ended.set_value(); }));
  const pid_t busy = held.get_future().get();
  const pid_t other = thread_of_job(pool);
  EXPECT_NE(other, busy);
  for (int i = 0; i < 10; ++i) EXPECT_NE(thread_of_job(pool), busy);
  hold.set_value();
  ended.get_future().wait();
}

TEST(WorkerPool, AForkedProcessHasNone) {
  ASSERT_NE(WorkerPool::of_process(), nullptr);
  const pid_t child = ::fork();
  if (child == 0) _exit(WorkerPool::of_process() == nullptr ? 0 : 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

#ifdef BATCHFS_REFUSES_THREADS

TEST(WorkerPool, AThreadThatTheSystemRefusesIsReported) {
  WorkerPool& pool = *WorkerPool::of_process();
  // Workers without a job are taken, so that the next job needs a new one.
  std::promise<void> hold;
  const std::shared_future<void> released = hold.get_future().share();
  std::atomic<int> running{0}, ended{0};
  int jobs = 0;
  const auto run = [&] {
    return pool.run(
        [&running, released] {
          ++running;
          released.wait();
        },
        [&ended] { ++ended; });
  };
  started_before_refusals = 0;
  while (run()) ++jobs;
  // The pool tries a thread of its own first; then oneTBB's is refused, several times.
  for (int i = 0; i < 3; ++i) {
    started_before_refusals = 1;
    EXPECT_FALSE(run());
  }
  started_before_refusals = -1;
  for (int i = 0; i < 5; ++i, ++jobs) EXPECT_TRUE(run());
  EXPECT_TRUE(eventually([&] { return running == jobs; }));
  EXPECT_EQ(ended, 0);
  hold.set_value();
  EXPECT_TRUE(eventually([&] { return ended == jobs; }));
}

#endif

}  // namespace worker_pool_test
}  // namespace batchfs
