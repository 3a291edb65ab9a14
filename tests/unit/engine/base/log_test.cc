#include "engine/base/log.h"

#include <algorithm>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace batchfs {
namespace log_test {

TEST(Log, KeepsLinesAtOrAboveItsLevel) {
  Log log(false, LogLevel::info);
  log.debug("hidden");
  log.info("chunk {} is fine");  // braces are text, not a format
  log.error("t2m/3.0.0: corrupt");
  EXPECT_THAT(log.text(), testing::HasSubstr("info chunk {} is fine\n"));
  EXPECT_THAT(log.text(), testing::HasSubstr("error t2m/3.0.0: corrupt\n"));
  EXPECT_THAT(log.text(), testing::Not(testing::HasSubstr("hidden")));
}

TEST(Log, TheLevelCanBeChanged) {
  Log log(false, LogLevel::info);
  EXPECT_EQ(log.level(), LogLevel::info);
  log.set_level(LogLevel::debug);
  EXPECT_EQ(log.level(), LogLevel::debug);
  log.debug("now");
  log.set_level(LogLevel::error);
  log.warning("no more");
  EXPECT_THAT(log.text(), testing::HasSubstr("debug now\n"));
  EXPECT_THAT(log.text(), testing::Not(testing::HasSubstr("no more")));
}

TEST(Log, ALineIsOneLine) {
  Log log;
  log.error("a name with\na newline and \x1b[31mcolour");
  EXPECT_THAT(log.text(), testing::HasSubstr("error a name with a newline and \\x1b[31mcolour\n"));
  const std::string text = log.text();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
}

TEST(Log, LevelsByName) {
  EXPECT_EQ(parse_log_level("debug"), LogLevel::debug);
  EXPECT_EQ(parse_log_level("error"), LogLevel::error);
  EXPECT_EQ(parse_log_level("DEBUG"), std::nullopt);
  EXPECT_EQ(parse_log_level(""), std::nullopt);
}

/// stderr of the child is a pipe that JOURNAL_STREAM names.
TEST(Log, ForTheJournalLinesBeginWithTheirPriority) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  struct stat status {};
  ASSERT_EQ(::fstat(ends[1], &status), 0);
  const std::string journal = std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino);
  EXPECT_TRUE(is_journal(ends[1], journal.c_str()));
  EXPECT_FALSE(is_journal(ends[1], "1:2"));
  EXPECT_FALSE(is_journal(ends[1], nullptr));
  EXPECT_FALSE(is_journal(-1, journal.c_str()));
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    ::setenv("JOURNAL_STREAM", journal.c_str(), 1);
    Log log(true, LogLevel::debug);
    log.debug("a");
    log.info("b");
    log.warning("c");
    log.error("d");
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string text;
  char block[256];
  for (ssize_t n; (n = ::read(ends[0], block, sizeof block)) > 0;)
    text.append(block, static_cast<std::size_t>(n));
  ::close(ends[0]);
  int ended = 0;
  ::waitpid(child, &ended, 0);
  EXPECT_EQ(text, "<7>a\n<6>b\n<4>c\n<3>d\n");
}

}  // namespace log_test
}  // namespace batchfs
