#include "tools/cli/silence.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace silence_test {

using namespace std::chrono_literals;

class SilenceTest : public testing::Test {
 protected:
  void pass(int looks, Silence::Duration pause, bool counts = true) {
    for (int i = 0; i < looks; ++i) silence_.look(now_ += pause, counts);
  }

  Silence::Time now_ = Silence::Time(1000h);
  Silence silence_{1s};
};

TEST_F(SilenceTest, LastsFromTheLastSignOfLife) {
  pass(21, 500ms);
  EXPECT_EQ(silence_.length(), 10s);
  silence_.heard();
  EXPECT_EQ(silence_.length(), 0s);
  pass(4, 500ms);
  EXPECT_EQ(silence_.length(), 2s);
}

TEST_F(SilenceTest, TimeInWhichNobodyLookedDoesNotCount) {
  pass(1, 0s);
  pass(1, 8h);  // suspended, stopped, frozen
  EXPECT_EQ(silence_.length(), 1s);
  pass(1, -8h);
  EXPECT_EQ(silence_.length(), 1s);
}

TEST_F(SilenceTest, BeginsAnewAfterTimeThatDoesNotCount) {
  pass(21, 500ms);
  pass(1, 500ms, false);
  EXPECT_EQ(silence_.length(), 0s);
  pass(2, 500ms);
  EXPECT_EQ(silence_.length(), 1s);
}

}  // namespace silence_test
}  // namespace batchfs
