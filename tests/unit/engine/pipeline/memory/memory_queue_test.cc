#include "engine/pipeline/memory/memory_queue.h"

#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/eventually.h"

namespace batchfs {
namespace memory_queue_test {

class MemoryQueueTest : public testing::Test {
 protected:
  /// A memory waiter that records its grant under `number`.
  MemoryWaiter waiter(std::uint64_t bytes, int number) {
    return {bytes, [] { return std::size_t{1}; }, [this, number] { return number == unwanted_; },
            [this, number](Budget::Reservation memory, std::exception_ptr error) {
              order_.push_back(number);
              if (error)
                code_ = error_of(error).code();
              else
                held_.push_back(std::move(memory));
            }};
  }

  Budget budget_{100};
  Ticker ticker_{[] {}};  // these tests serve the queue themselves
  bool at_work_ = false;
  MemoryQueue queue_{budget_,
                     ticker_,
                     0,
                     {.reserve = [this](std::uint64_t bytes) { return budget_.try_reserve(bytes); },
                      .is_at_work = [this] { return at_work_; }}};
  MemoryQueue patient_{
      budget_,
      ticker_,
      UINT64_MAX,
      {.reserve = [this](std::uint64_t bytes) { return budget_.try_reserve(bytes); },
       .is_at_work = [this] { return at_work_; }}};
  std::vector<int> order_;
  std::vector<Budget::Reservation> held_;
  std::optional<ErrorCode> code_;
  int unwanted_ = -1;
};

TEST_F(MemoryQueueTest, FirstComeFirstServed) {
  Budget::Reservation all = budget_.reserve(100);
  patient_.push(waiter(60, 1));
  patient_.push(waiter(10, 2));
  EXPECT_EQ(patient_.readers(), 2u);
  all.split(50);  // room for the second, but it does not overtake
  patient_.serve();
  EXPECT_TRUE(order_.empty());
  all.split(10);
  patient_.serve();
  EXPECT_EQ(order_, (std::vector{1}));
  all.split(10);
  patient_.serve();
  EXPECT_EQ(order_, (std::vector{1, 2}));
  EXPECT_TRUE(patient_.empty());
  EXPECT_FALSE(code_);
}

TEST_F(MemoryQueueTest, WhoNobodyWaitsForIsPassedOver) {
  Budget::Reservation all = budget_.reserve(100);
  patient_.push(waiter(60, 1));
  patient_.push(waiter(10, 2));
  unwanted_ = 1;
  all.release();
  patient_.serve();
  EXPECT_EQ(order_, (std::vector{2}));
  EXPECT_TRUE(patient_.empty());
}

TEST_F(MemoryQueueTest, FailsWhereReadersHoldAllMemory) {
  const Budget::Reservation all = budget_.reserve(100);
  queue_.push(waiter(60, 1));
  queue_.serve();  // sees for the first time how much is in use
  queue_.serve();
  EXPECT_EQ(order_, (std::vector{1}));
  EXPECT_EQ(code_, ErrorCode::no_memory);
}

TEST_F(MemoryQueueTest, WaitsForWhatIsBeingMade) {
  const Budget::Reservation all = budget_.reserve(100);
  MemoryQueue queue(budget_, ticker_, 1'000'000'000'000,
                    {.reserve = [this](std::uint64_t bytes) { return budget_.try_reserve(bytes); },
                     .is_at_work = [this] { return at_work_; }});
  at_work_ = true;
  queue.push(waiter(60, 1));
  for (int i = 0; i < 10; ++i) queue.serve();
  EXPECT_TRUE(order_.empty());
  queue.stop();
}

TEST_F(MemoryQueueTest, StoppingFailsAllAndThoseThatComeLater) {
  const Budget::Reservation all = budget_.reserve(100);
  patient_.push(waiter(60, 1));
  patient_.push(waiter(60, 2));
  patient_.stop();
  patient_.push(waiter(60, 3));
  EXPECT_EQ(order_, (std::vector{1, 2, 3}));
  EXPECT_EQ(code_, ErrorCode::interrupted);
  EXPECT_TRUE(patient_.empty());
}

TEST_F(MemoryQueueTest, TheTickerServesIt) {
  MemoryQueue* self = nullptr;
  Ticker ticker([&] { self->serve(); });
  MemoryQueue queue(budget_, ticker, UINT64_MAX,
                    {.reserve = [this](std::uint64_t bytes) { return budget_.try_reserve(bytes); },
                     .is_at_work = [] { return false; }});
  self = &queue;
  Budget::Reservation all = budget_.reserve(100);
  queue.push(waiter(60, 1));
  all.release();
  EXPECT_TRUE(eventually([&] { return queue.empty(); }));
  ticker.stop();
  EXPECT_EQ(order_, (std::vector{1}));
}

}  // namespace memory_queue_test
}  // namespace batchfs
