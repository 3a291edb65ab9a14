#include "engine/pipeline/read_ahead.h"

#include <atomic>

#include <gtest/gtest.h>

#include "tests/unit/engine/pipeline/parts.h"
#include "tests/unit/eventually.h"

namespace batchfs {
namespace read_ahead_test {

class ReadAheadTest : public testing::Test {
 protected:
  bool is_made(std::int64_t batch) const {
    return parts_.table.is_made(parts_.request(batch).key());
  }
  void open(std::int64_t batch) {
    parts_.read_ahead.learn(parts_.request(batch), false);
    parts_.read_ahead.make_next(parts_.request(batch));
  }
  Parts parts_;
};

TEST_F(ReadAheadTest, MakesTheBatchesOfThePrefetch) {
  open(0);
  EXPECT_TRUE(eventually([&] { return parts_.counters.batches_assembled == 2; }));
  EXPECT_FALSE(is_made(0)) << "its reader opens it";
  EXPECT_TRUE(is_made(1) && is_made(2));
  EXPECT_FALSE(is_made(3));
}

TEST_F(ReadAheadTest, AGuessThatComesLateMakesNothingThatTheReaderHasPassed) {
  // A worker that was held up after it had asked which batches are due.
  parts_.read_ahead.learn(parts_.request(0), false);
  const auto due = parts_.prefetcher.due(parts_.request(0), 96, 1 << 20);
  ASSERT_EQ(due.size(), 2u);
  for (std::int64_t b = 1; b < 9; ++b) parts_.read_ahead.learn(parts_.request(b), false);
  for (const BatchRequest& late : due) EXPECT_FALSE(parts_.prefetcher.is_ahead(late));
  const std::uint64_t before = parts_.counters.batches_prefetched;
  parts_.read_ahead.make_next(parts_.request(0));
  EXPECT_TRUE(eventually([&] { return parts_.counters.batches_prefetched > before; }));
  EXPECT_FALSE(is_made(1) || is_made(2) || is_made(8));
  EXPECT_TRUE(is_made(9));
}

TEST_F(ReadAheadTest, ItsErrorsAreLeftToTheReader) {
  parts_.data.store->failing = 1;
  open(0);
  EXPECT_TRUE(eventually([&] { return parts_.counters.batches_assembled == 1 && !is_made(1); }));
  EXPECT_TRUE(is_made(2));
}

/// Keeps the workers busy for everything less urgent than a waiting reader, until release().
class WaitingReaders {
 public:
  explicit WaitingReaders(Executor& executor)
      : executor_(executor), running_(2 * executor.threads()) {
    for (int i = running_; i > 0; --i) post();
  }
  ~WaitingReaders() { release(); }
  void release() {
    waits_ = false;
    EXPECT_TRUE(eventually([&] { return running_ == 0; }));
  }

 private:
  void post() {
    executor_.post(kReaderWaits, [this] {
      if (waits_)
        post();
      else
        --running_;
    });
  }
  Executor& executor_;
  std::atomic<bool> waits_{true};
  std::atomic<int> running_;
};

// A reader that always waits must not keep batches from joining the chunks that are decoded for it.
TEST_F(ReadAheadTest, BatchesBeginWhileReadersWait) {
  WaitingReaders readers(parts_.executor);
  open(0);
  EXPECT_TRUE(eventually([&] { return parts_.counters.batches_prefetched == 2; }));
  EXPECT_TRUE(eventually([&] {
    return parts_.cache.uses({parts_.array.get(), 3}) == 1;
  })) << "those behind them are announced";
  EXPECT_EQ(parts_.counters.batches_assembled, 0u) << "decoding them comes later";
  readers.release();
  EXPECT_TRUE(eventually([&] { return parts_.counters.batches_assembled == 2; }));
}

// Some at a time. Batches that were left until nobody waits begin with the next batches.
TEST_F(ReadAheadTest, BatchesThatWereExpectedEarlierBeginWhileReadersWait) {
  const auto view = parts_.data.view(R"({"window": {"time": 1}, "batch": 1})");
  const auto request = [&](std::int64_t batch) {
    return BatchRequest{view, &parts_.format, 0, batch};
  };
  for (std::int64_t batch = 0; batch < 4; ++batch) parts_.read_ahead.learn(request(batch), true);
  ASSERT_EQ(parts_.prefetcher.streams().at(0).prefetch, 16);
  const WaitingReaders readers(parts_.executor);
  parts_.read_ahead.make_next(request(3));
  EXPECT_TRUE(eventually([&] { return parts_.counters.batches_prefetched == 8; }));
  EXPECT_TRUE(parts_.table.is_made(request(19).key()));
  parts_.read_ahead.make_next(request(3));
  EXPECT_TRUE(eventually([&] { return parts_.counters.batches_prefetched == 16; }));
  parts_.read_ahead.make_next(request(3));
  EXPECT_EQ(parts_.counters.batches_prefetched, 16u);
}

TEST_F(ReadAheadTest, TakesNoMemoryThatReadersQueueFor) {
  const Budget::Reservation all = parts_.budget.reserve(parts_.budget.limit());
  parts_.queue.push({.bytes = 10,
                     .readers = [] { return std::size_t{1}; },
                     .give_up = [] { return false; },
                     .granted = [](Budget::Reservation, const std::exception_ptr&) {}});
  open(0);
  EXPECT_TRUE(eventually([&] { return parts_.prefetcher.streams().at(0).prefetch == 1; }))
      << "pressure shrinks the prefetch";
  EXPECT_TRUE(eventually([&] { return !is_made(1) && !is_made(2); }));
  EXPECT_EQ(parts_.counters.batches_prefetched, 0u);
}

}  // namespace read_ahead_test
}  // namespace batchfs
