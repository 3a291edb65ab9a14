#include "fs/pending_requests.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace batchfs {
namespace pending_requests_test {

using Answer = std::function<void(int)>;

TEST(PendingRequests, AreAnsweredOnce) {
  PendingRequests<Answer> requests;
  int answer = 0;
  const RequestToken token = requests.begin([&](int value) { answer += value; });
  EXPECT_NE(token, requests.begin(nullptr));
  requests.take(token)(5);
  EXPECT_EQ(answer, 5);
  EXPECT_FALSE(requests.take(token));
  EXPECT_FALSE(requests.take(1000));
}

TEST(PendingRequests, ASignalCancelsWhatWasStarted) {
  PendingRequests<Answer> requests;
  int cancelled = 0;
  const RequestToken token = requests.begin([](int) {});
  EXPECT_TRUE(requests.start(token, [&] { ++cancelled; }));
  EXPECT_EQ(cancelled, 0);
  requests.interrupt(token);
  EXPECT_EQ(cancelled, 1);
  EXPECT_TRUE(requests.take(token)) << "the one that cancels answers";
}

TEST(PendingRequests, ASignalBeforeTheStartCountsThen) {
  PendingRequests<Answer> requests;
  int cancelled = 0;
  const RequestToken token = requests.begin([](int) {});
  requests.interrupt(token);
  EXPECT_EQ(cancelled, 0);
  EXPECT_FALSE(requests.start(token, [&] { ++cancelled; }));
  EXPECT_EQ(cancelled, 1);
}

TEST(PendingRequests, ASignalAfterTheAnswerDoesNothing) {
  PendingRequests<Answer> requests;
  int cancelled = 0;
  const RequestToken token = requests.begin([](int) {});
  requests.take(token);
  EXPECT_TRUE(requests.start(token, [&] { ++cancelled; }));
  requests.interrupt(token);
  EXPECT_EQ(cancelled, 0);
}

TEST(PendingRequests, TheResultAndTheSignalRace) {
  PendingRequests<Answer> requests;
  std::atomic<int> answers{0};
  std::vector<RequestToken> tokens;
  for (int i = 0; i < 1000; ++i) tokens.push_back(requests.begin([&](int) { ++answers; }));
  const auto answer = [&](RequestToken token) {
    if (const Answer found = requests.take(token)) found(0);
  };
  std::thread signals([&] {
    for (const RequestToken token : tokens) requests.interrupt(token);
  });
  for (const RequestToken token : tokens) {
    requests.start(token, [&answer, token] { answer(token); });
    answer(token);
  }
  signals.join();
  EXPECT_EQ(answers, 1000);
}

}  // namespace pending_requests_test
}  // namespace batchfs
