#include "tools/doctor/checks.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace batchfs {
namespace checks_test {

Check::State state_of(const Checks& checks, const std::string& topic) {
  const auto found =
      std::find_if(checks.begin(), checks.end(), [&](const Check& c) { return c.topic == topic; });
  EXPECT_NE(found, checks.end()) << topic;
  return found == checks.end() ? Check::State::problem : found->state;
}

TEST(Checks, KernelsByTheirRelease) {
  using enum Check::State;
  EXPECT_EQ(state_of(check_kernel_release("6.12.4-amd64"), "passthrough"), ok);
  EXPECT_EQ(state_of(check_kernel_release("6.9.0"), "passthrough"), ok);
  EXPECT_EQ(state_of(check_kernel_release("6.8.12"), "passthrough"), note);
  EXPECT_EQ(state_of(check_kernel_release("6.8.12"), "direct-io mmap"), ok);
  EXPECT_EQ(state_of(check_kernel_release("5.15.0-91-generic"), "direct-io mmap"), note);
  EXPECT_EQ(state_of(check_kernel_release("7.0"), "resend"), ok);
  EXPECT_EQ(state_of(check_kernel_release("what"), "kernel"), note);
}

TEST(Checks, EveryNoteAndProblemOfTheKernelSaysWhatToDo) {
  for (const Check& check : check_kernel_release("5.4"))
    EXPECT_FALSE(check.next.empty()) << check.topic;
}

TEST(Checks, FuseConf) {
  EXPECT_FALSE(allows_other(""));
  EXPECT_FALSE(allows_other("#user_allow_other\n# user_allow_other\nmount_max = 1000\n"));
  EXPECT_FALSE(allows_other("user_allow_others\n"));
  EXPECT_TRUE(allows_other("mount_max = 1000\n  user_allow_other \r\n"));
  EXPECT_TRUE(allows_other("user_allow_other"));
}

TEST(Checks, TheChoiceInBrackets) {
  EXPECT_EQ(chosen("always within_size [advise] never deny force"), "advise");
  EXPECT_EQ(chosen(""), "");
  EXPECT_EQ(chosen("never]"), "");
}

TEST(Checks, LimitsAreToldWhereverThisRuns) {
  const Checks checks = check_limits();
  EXPECT_EQ(checks.size(), 4u);
  for (const Check& check : checks) EXPECT_FALSE(check.found.empty()) << check.topic;
}

}  // namespace checks_test
}  // namespace batchfs
