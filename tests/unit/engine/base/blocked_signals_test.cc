#include "engine/base/blocked_signals.h"

#include <thread>

#include <gtest/gtest.h>

namespace batchfs {
namespace blocked_signals_test {

bool is_blocked(int signal) {
  sigset_t now;
  pthread_sigmask(SIG_SETMASK, nullptr, &now);
  return sigismember(&now, signal) == 1;
}

TEST(BlockedSignals, ThreadsThatAreStartedMeanwhileTakeNone) {
  ASSERT_FALSE(is_blocked(SIGUSR2));
  bool usr2 = false, segv = true;
  std::thread started;
  {
    const BlockedSignals blocked{SIGSEGV};
    started = std::thread([&] {
      usr2 = is_blocked(SIGUSR2);
      segv = is_blocked(SIGSEGV);
    });
  }
  EXPECT_FALSE(is_blocked(SIGUSR2));
  started.join();
  EXPECT_TRUE(usr2);
  EXPECT_FALSE(segv);
}

}  // namespace blocked_signals_test
}  // namespace batchfs
