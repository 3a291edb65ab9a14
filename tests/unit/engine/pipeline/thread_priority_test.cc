#include "engine/pipeline/thread_priority.h"

#include <algorithm>
#include <thread>

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace batchfs {
namespace thread_priority_test {

int priority() { return getpriority(PRIO_PROCESS, 0); }

TEST(ThreadPriority, AThreadYieldsToTheMainThread) {
  const int of_main = priority();
  int lowered = -1;
  std::thread([&] {
    lower_thread_priority();
    lowered = priority();
  }).join();
  EXPECT_EQ(lowered, std::min(of_main + 5, 19));
  EXPECT_EQ(priority(), of_main);
}

TEST(ThreadPriority, AThreadOfAThreadYieldsNoMore) {
  int lowered = -1;
  std::thread([&] {
    lower_thread_priority();
    std::thread([&] {
      lower_thread_priority();
      lowered = priority();
    }).join();
  }).join();
  EXPECT_EQ(lowered, std::min(priority() + 5, 19));
}

}  // namespace thread_priority_test
}  // namespace batchfs
