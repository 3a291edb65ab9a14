#include "tools/service/restarts.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace restarts_test {

using namespace std::chrono_literals;

class RestartsTest : public testing::Test {
 protected:
  Restarts restarts_;
  Restarts::Time now_ = Restarts::Time(1000h);

  bool goes_on(const Restarts::End& end) { return !restarts_.ended(end, now_); }
  Restarts::End crash() const {
    return {.how = "ended with exit status 3", .ready = true, .served = true};
  }
  Restarts::End failure() const { return {.how = "gave up: no store"}; }
  Restarts::End kill(bool served) const {
    return {.how = "was killed", .ready = true, .served = served, .killed = true};
  }
};

TEST_F(RestartsTest, FiveCrashesWithinAMinuteAreTooMany) {
  for (int i = 0; i < 4; ++i, now_ += 14s) EXPECT_TRUE(goes_on(crash()));
  const auto why = restarts_.ended(crash(), now_);
  ASSERT_TRUE(why);
  EXPECT_EQ(*why,
            "the daemon ended 5 times within a minute and is not started again; the last one ended "
            "with exit status 3");
}

TEST_F(RestartsTest, ThreeHangsInARowAreTooMany) {
  const auto hang = [](bool served) {
    return Restarts::End{.how = "did not answer for 30 seconds",
                         .ready = true,
                         .served = served,
                         .killed = true,
                         .hung = true};
  };
  for (int i = 0; i < 50; ++i, now_ += 31s) EXPECT_TRUE(goes_on(hang(i % 3 == 2))) << i;
  EXPECT_EQ(restarts_.delay(), 0ms);
  EXPECT_TRUE(goes_on(hang(true)));
  for (int i = 0; i < 2; ++i, now_ += 29min) EXPECT_TRUE(goes_on(hang(false)));
  const auto why = restarts_.ended(hang(false), now_);
  ASSERT_TRUE(why);
  EXPECT_NE(why->find("hung 3 times within an hour"), std::string::npos) << *why;
}

TEST_F(RestartsTest, CrashesNowAndThenAreNot) {
  for (int i = 0; i < 100; ++i, now_ += 16s) EXPECT_TRUE(goes_on(crash())) << i;
}

TEST_F(RestartsTest, KillsUnderReadersAreNobodysFault) {
  for (int i = 0; i < 1000; ++i, now_ += 10ms) EXPECT_TRUE(goes_on(kill(true))) << i;
  EXPECT_EQ(restarts_.delay(), 0ms);
}

TEST_F(RestartsTest, KillsOfDaemonsThatNeverServeAreGivenUp) {
  for (int i = 0; i < 19; ++i, now_ += 30s) EXPECT_TRUE(goes_on(kill(false)));
  const auto why = restarts_.ended(kill(false), now_);
  ASSERT_TRUE(why);
  EXPECT_NE(why->find("killed 20 times within 10 minutes"), std::string::npos);
  EXPECT_NE(why->find("--memory"), std::string::npos);
}

TEST_F(RestartsTest, OneThatServedMakesGoodForThoseBefore) {
  for (int i = 0; i < 100; ++i, now_ += 1s) EXPECT_TRUE(goes_on(kill(i % 20 == 19))) << i;
  // A crash of a daemon that served makes good, too.
  for (int i = 0; i < 19; ++i) EXPECT_TRUE(goes_on(kill(false)));
  EXPECT_TRUE(goes_on(crash()));
  EXPECT_TRUE(goes_on(kill(false)));
}

TEST_F(RestartsTest, KillsNowAndThenAreNot) {
  for (int i = 0; i < 100; ++i, now_ += 35s) EXPECT_TRUE(goes_on(kill(false))) << i;
}

TEST_F(RestartsTest, AKillBeforeItIsReadyIsAKill) {
  const Restarts::End killed{.how = "was killed", .killed = true};
  for (int i = 0; i < 19; ++i) EXPECT_TRUE(goes_on(killed));
  EXPECT_EQ(restarts_.delay(), 0ms);
  EXPECT_FALSE(goes_on(killed));
}

TEST_F(RestartsTest, ReadersWaitAMinuteForOneThatGetsReady) {
  EXPECT_TRUE(goes_on(crash()));
  now_ += 40s;
  EXPECT_TRUE(goes_on(failure()));
  now_ += 20s;
  const auto why = restarts_.ended(failure(), now_);
  ASSERT_TRUE(why);
  EXPECT_EQ(*why, "no daemon became ready for 60 seconds; the last one gave up: no store");
}

TEST_F(RestartsTest, TheMinuteBeginsAnewWithOneThatIs) {
  EXPECT_TRUE(goes_on(crash()));
  restarts_.got_ready();
  now_ += 2min;
  EXPECT_TRUE(goes_on(failure()));
  now_ += 59s;
  EXPECT_TRUE(goes_on(failure()));
}

TEST_F(RestartsTest, PausesDouble) {
  std::vector<std::chrono::milliseconds> delays;
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(goes_on(failure()));
    delays.push_back(restarts_.delay());
  }
  EXPECT_EQ(delays, (std::vector<std::chrono::milliseconds>{100ms, 200ms, 400ms, 800ms}));
  // A daemon that was ready is restarted at once.
  restarts_.got_ready();
  now_ += 2min;
  EXPECT_TRUE(goes_on(crash()));
  EXPECT_EQ(restarts_.delay(), 0ms);
}

}  // namespace restarts_test
}  // namespace batchfs
