#include "engine/codec/optional/own_thread.h"

#include <atomic>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

namespace batchfs {
namespace own_thread_test {

/// Never destroyed, like the real ones.
OwnThread& own_thread() {
  static auto* const thread = new OwnThread;
  return *thread;
}

TEST(OwnThread, RunsAllTasksOneAfterTheOther) {
  std::set<std::thread::id> ids;  // of the tasks, which need no lock
  std::vector<std::thread> callers;
  for (int i = 0; i < 8; ++i)
    callers.emplace_back([&ids] {
      for (int k = 0; k < 100; ++k)
        own_thread().run([&ids] { ids.insert(std::this_thread::get_id()); });
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(ids.size(), 1u);
  EXPECT_FALSE(ids.contains(std::this_thread::get_id()));
}

TEST(OwnThread, GivesExceptionsToTheCaller) {
  EXPECT_THROW(own_thread().run([] { throw std::runtime_error("x"); }), std::runtime_error);
  int value = 0;
  own_thread().run([&value] { value = 1; });
  EXPECT_EQ(value, 1);
}

TEST(OwnThread, StartsAgainAfterAFork) {
  own_thread().run([] {});
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    int value = 1;
    own_thread().run([&value] { value = 0; });
    ::_exit(value);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace own_thread_test
}  // namespace batchfs
