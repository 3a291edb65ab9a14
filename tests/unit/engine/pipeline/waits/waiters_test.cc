#include "engine/pipeline/waits/waiters.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "engine/telemetry/trace.h"
#include "tests/unit/eventually.h"

namespace batchfs {
namespace waiters_test {

class WaitersTest : public testing::Test {
 protected:
  /// A waiter that counts how it ends.
  Waiter waiter(std::uint64_t since = Trace::now()) {
    return {[this](const std::shared_ptr<const Batch>&, std::exception_ptr error) {
              ++done_;
              if (error) code_ = error_of(error).code();
            },
            [this](WaiterId id) {
              ++left_;
              left_id_ = id;
            },
            since};
  }
  WaiterId add(Waiters& waiters, std::uint64_t since = Trace::now()) {
    Waiter one = waiter(since);
    return waiters.add(one);
  }

  std::atomic<int> done_{0}, left_{0};
  std::atomic<WaiterId> left_id_{0};
  std::atomic<ErrorCode> code_{};
  Counters counters_;
  Log log_;
  Ticker idle_ticker_{[] {}};
};

TEST_F(WaitersTest, WhoTakesAWaiterCallsIt) {
  Waiters waiters(UINT64_MAX, idle_ticker_, counters_, log_);
  const WaiterId id = add(waiters);
  EXPECT_NE(id, 0u);
  EXPECT_TRUE(waiters.contains(id));
  EXPECT_EQ(waiters.count(), 1u);
  const std::optional<Waiter> taken = waiters.take(id);
  ASSERT_TRUE(taken);
  taken->done(nullptr, nullptr);
  EXPECT_FALSE(waiters.take(id));
  waiters.cancel(id);
  EXPECT_EQ(done_, 1);
  EXPECT_EQ(left_, 0) << "it got its result";
  EXPECT_EQ(waiters.count(), 0u);
}

TEST_F(WaitersTest, ACancelledWaiterLeavesAndIsTold) {
  Waiters waiters(UINT64_MAX, idle_ticker_, counters_, log_);
  const WaiterId id = add(waiters), other = add(waiters);
  waiters.cancel(id);
  waiters.cancel(id);
  waiters.cancel(0);
  EXPECT_EQ(done_, 1);
  EXPECT_EQ(left_, 1);
  EXPECT_EQ(left_id_, id);
  EXPECT_EQ(code_, ErrorCode::interrupted);
  EXPECT_TRUE(waiters.contains(other));
  EXPECT_EQ(counters_.errors, 0u);
}

TEST_F(WaitersTest, DeadlinesEndWaits) {
  Waiters* self = nullptr;
  Ticker ticker([&] { self->expire(); });
  Waiters waiters(20'000'000, ticker, counters_, log_);
  self = &waiters;
  add(waiters);
  add(waiters);
  const WaiterId patient = add(waiters, Waiter::kNoDeadline);
  EXPECT_TRUE(eventually([&] { return done_ == 2; }));
  EXPECT_EQ(left_, 2);
  EXPECT_EQ(code_, ErrorCode::timed_out);
  EXPECT_EQ(counters_.errors, 2u);
  EXPECT_NE(log_.text().find("--wait"), std::string::npos);
  waiters.expire();
  EXPECT_TRUE(waiters.contains(patient));
  ticker.stop();
}

TEST_F(WaitersTest, TheEndOfTheEngineEndsAllWaitsAndRefusesMore) {
  Waiters waiters(UINT64_MAX, idle_ticker_, counters_, log_);
  for (int i = 0; i < 3; ++i) add(waiters);
  waiters.stop();
  EXPECT_EQ(done_, 3);
  EXPECT_EQ(left_, 3);
  EXPECT_EQ(code_, ErrorCode::interrupted);
  Waiter late = waiter();
  EXPECT_EQ(waiters.add(late), 0u);
  EXPECT_TRUE(late.done) << "the caller calls it";
}

TEST_F(WaitersTest, ADoneMayAddAWaiter) {
  Waiters waiters(UINT64_MAX, idle_ticker_, counters_, log_);
  Waiter first{
      [&](const std::shared_ptr<const Batch>&, const std::exception_ptr&) { add(waiters); },
      nullptr, 0};
  waiters.cancel(waiters.add(first));
  EXPECT_EQ(waiters.count(), 1u);
}

TEST_F(WaitersTest, EachIsCalledOnceWhoeverEndsIt) {
  constexpr int kWaiters = 2000;
  Waiters waiters(UINT64_MAX, idle_ticker_, counters_, log_);
  std::vector<WaiterId> ids;
  for (int i = 0; i < kWaiters; ++i) ids.push_back(add(waiters));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (const WaiterId id : ids) {
        if (t % 2 == 0)
          waiters.cancel(id);
        else if (const auto taken = waiters.take(id))
          taken->done(nullptr, nullptr);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(done_, kWaiters);
}

}  // namespace waiters_test
}  // namespace batchfs
