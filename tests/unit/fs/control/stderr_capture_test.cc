#include "fs/control/stderr_capture.h"

#include <cstdlib>
#include <string_view>

#include <gtest/gtest.h>
#include <unistd.h>

namespace batchfs {
namespace stderr_capture_test {

void say(std::string_view text) {
  ASSERT_EQ(::write(STDERR_FILENO, text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

TEST(StderrCapture, KeepsWhatIsWrittenAsOneLine) {
  testing::internal::CaptureStderr();
  say("before\n");
  {
    const StderrCapture told;
    EXPECT_EQ(told.text(), "");
    say("fuse: device not found\n");
    say("try again\n\n");
    EXPECT_EQ(told.text(), "fuse: device not found try again");
  }
  say("after\n");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "before\nafter\n");
}

TEST(StderrCapture, HearsProgramsToo) {
  const StderrCapture told;
  ASSERT_EQ(std::system("echo from elsewhere >&2"), 0);
  EXPECT_EQ(told.text(), "from elsewhere");
}

TEST(StderrCapture, KeepsNoMoreThanALine) {
  const StderrCapture told;
  say(std::string(5000, 'x'));
  EXPECT_EQ(told.text(), std::string(1000, 'x'));
}

}  // namespace stderr_capture_test
}  // namespace batchfs
