#include "tools/service/log_level_signal.h"

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace batchfs {
namespace log_level_signal_test {

/// Waits until the level is this one; false after ten seconds.
bool becomes(const Log& log, LogLevel level) {
  for (int i = 0; i < 10'000 && log.level() != level; ++i) ::usleep(1000);
  return log.level() == level;
}

TEST(LogLevelSignal, TurnsDebugOnAndOff) {
  Log log;
  const LogLevelSignal signal(log);
  ::kill(::getpid(), kLogLevelSignal);
  EXPECT_TRUE(becomes(log, LogLevel::debug));
  ::kill(::getpid(), kLogLevelSignal);
  EXPECT_TRUE(becomes(log, LogLevel::info));
  EXPECT_THAT(log.text(), testing::HasSubstr("the log's level is debug from now on"));
}

TEST(LogLevelSignal, SetsTheLevelThatItBrings) {
  Log log;
  const LogLevelSignal signal(log);
  sigval value{};
  value.sival_int = static_cast<int>(LogLevel::error);
  ::sigqueue(::getpid(), kLogLevelSignal, value);
  EXPECT_TRUE(becomes(log, LogLevel::error));
  value.sival_int = 99;  // no level: as without one
  ::sigqueue(::getpid(), kLogLevelSignal, value);
  EXPECT_TRUE(becomes(log, LogLevel::debug));
}

TEST(LogLevelSignal, EndsAtOnce) {
  Log log;
  for (int i = 0; i < 50; ++i) const LogLevelSignal signal(log);
}

}  // namespace log_level_signal_test
}  // namespace batchfs
