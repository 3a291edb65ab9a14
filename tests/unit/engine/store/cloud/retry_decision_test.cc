#include "engine/store/cloud/retry_decision.h"

#include <gmock/gmock.h>

namespace batchfs {

namespace retry_decision_test {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kNow = 1000 * kSecond, kDeadline = kNow + 40 * kSecond;
using ::testing::HasSubstr;

AnswerFinding trouble(std::optional<double> wait = {}, bool is_refusal = false) {
  return {{Verdict::retry, Error(ErrorCode::io, "trouble")}, wait, is_refusal};
}

TEST(RetryDecision, DelaysGrowUpToALimit) {
  const RequestOptions options{.retries = 100};
  std::int64_t last = 0;
  for (int tried = 1; tried < 50; ++tried) {
    const RetryDecision decision = decide_retry(options, {tried, 0, kDeadline}, trouble(), 1, kNow);
    ASSERT_FALSE(decision.error);
    EXPECT_GE(decision.at, last);
    last = decision.at;
    EXPECT_EQ(decide_retry(options, {tried, 0, kDeadline}, trouble(), 0, kNow).at, kNow);
  }
  EXPECT_EQ(last, kNow + 10 * kSecond);
}

TEST(RetryDecision, AttemptsAreLimitedByNumberAndTime) {
  const RequestOptions options{.retries = 3};
  EXPECT_FALSE(decide_retry(options, {3, 0, kDeadline}, trouble(), 1, kNow).error);
  EXPECT_THAT(decide_retry(options, {4, 0, kDeadline}, trouble(), 1, kNow).error->why(),
              HasSubstr("trouble; tried 4 times"));
  EXPECT_THAT(decide_retry(options, {1, 0, kNow}, trouble(), 1, kNow).error->why(),
              HasSubstr("tried once"));
}

TEST(RetryDecision, TheServerNamesTheTime) {
  const RequestOptions options{.retries = 3};
  const std::int64_t at = decide_retry(options, {1, 0, kDeadline}, trouble(7), 0.5, kNow).at;
  EXPECT_GE(at, kNow + 7 * kSecond);
  EXPECT_LE(at, kNow + 8 * kSecond);
  EXPECT_GT(decide_retry(options, {3, 0, kDeadline}, trouble(0), 0.5, kNow).at, kNow)
      << "not without pause";
  EXPECT_THAT(decide_retry(options, {1, 0, kDeadline}, trouble(3600), 0, kNow).error->why(),
              HasSubstr("it asks to wait for 3600 s"));
}

TEST(RetryDecision, RefusalsOfABusyServerAreLimitedByTimeOnly) {
  const RequestOptions options{.retries = 3};
  EXPECT_FALSE(decide_retry(options, {50, 50, kDeadline}, trouble(0, true), 1, kNow).error);
  EXPECT_FALSE(decide_retry(options, {50, 47, kDeadline}, trouble(0, true), 1, kNow).error);
  EXPECT_TRUE(decide_retry(options, {50, 46, kDeadline}, trouble(0, true), 1, kNow).error);
  EXPECT_TRUE(decide_retry(options, {50, 50, kNow}, trouble(0, true), 1, kNow).error);
}

TEST(RetryDecision, AServerIsBusyThatAnswersOthers) {
  const RequestOptions options;
  const auto busy = [&](bool is_refusal, std::int64_t last_answer) {
    return is_load_refusal(options, trouble({}, is_refusal), last_answer, kNow);
  };
  EXPECT_TRUE(busy(true, kNow - kSecond));
  EXPECT_FALSE(busy(false, kNow - kSecond)) << "another trouble";
  EXPECT_FALSE(busy(true, 0)) << "it never answered";
  EXPECT_FALSE(busy(true, kNow - 30 * kSecond)) << "it may be down";
}

}  // namespace retry_decision_test

}  // namespace batchfs
