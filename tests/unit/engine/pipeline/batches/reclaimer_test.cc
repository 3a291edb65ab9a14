#include "engine/pipeline/batches/reclaimer.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/pipeline/parts.h"

namespace batchfs {
namespace reclaimer_test {

class ReclaimerTest : public testing::Test {
 protected:
  /// A ready batch in the table that holds 20 bytes.
  void make(std::int64_t number, bool opened) {
    BatchTable::RecordPtr record;
    if (opened) {
      Waiter waiter{[](const std::shared_ptr<const Batch>&, const std::exception_ptr&) {}, nullptr,
                    1};
      record = parts_.table.open(parts_.request(number), waiter).assemble;
    } else {
      record = parts_.table.expect(parts_.request(number), number, true, false).assemble;
    }
    const auto begun = parts_.table.begin(record);
    parts_.table.submitted(record, *begun->assembly, begun->waited);
    auto batch = std::make_shared<Batch>();
    batch->reservation = parts_.budget.reserve(20);
    for (const WaiterId id : parts_.table.complete(record, std::move(batch), false).waiters)
      parts_.waiters.take(id);
  }
  bool has(std::int64_t number) const { return parts_.table.is_made(parts_.request(number).key()); }
  /// A cached chunk of 20 bytes.
  void cache(std::int64_t chunk) {
    parts_.cache.insert(
        {parts_.array.get(), chunk}, parts_.array,
        {.memory = std::make_shared<Budget::Reservation>(parts_.budget.reserve(20))}, 20);
  }

  Parts parts_{100};
};

TEST_F(ReclaimerTest, DropsKeptBatchesThenChunksThenWhatNobodyOpened) {
  make(0, true);
  make(1, false);
  make(2, false);
  cache(0);
  cache(1);
  EXPECT_EQ(parts_.budget.used(), 100u);
  const auto first = parts_.reclaimer.reserve_for_reader(20);
  EXPECT_TRUE(first);
  EXPECT_FALSE(has(0));
  EXPECT_EQ(parts_.cache.bytes(), 40u);
  const auto second = parts_.reclaimer.reserve_for_reader(40);
  EXPECT_TRUE(second);
  EXPECT_EQ(parts_.cache.bytes(), 0u);
  EXPECT_TRUE(has(1) && has(2));
  const auto third = parts_.reclaimer.reserve_for_reader(20);
  EXPECT_TRUE(third);
  EXPECT_TRUE(has(1)) << "it is due sooner";
  EXPECT_FALSE(has(2));
}

TEST_F(ReclaimerTest, APrefetchLeavesWhatIsPrefetchedAndChunksThatAreNeededSooner) {
  make(1, false);
  make(2, false);
  make(3, false);
  cache(0);
  cache(1);
  parts_.cache.add_use({parts_.array.get(), 0}, 5);
  const auto first = parts_.reclaimer.reserve_for_prefetch(20, 10);
  EXPECT_TRUE(first);
  EXPECT_EQ(parts_.cache.bytes(), 20u);
  EXPECT_FALSE(parts_.reclaimer.reserve_for_prefetch(20, 10));
  EXPECT_TRUE(has(1) && has(2) && has(3));
  EXPECT_EQ(parts_.cache.bytes(), 20u);
}

TEST_F(ReclaimerTest, WhatKeepsNoReaderFromWaitingDropsNoChunkThatIsUsedAgain) {
  make(0, true);
  for (std::int64_t chunk : {0, 1, 2, 3}) cache(chunk);
  for (std::int64_t chunk : {0, 1, 2})
    parts_.cache.add_use({parts_.array.get(), chunk}, 50 + chunk);
  const auto of_opened = parts_.reclaimer.reserve_spare(20);
  EXPECT_TRUE(of_opened);
  EXPECT_FALSE(has(0));
  const auto of_no_use = parts_.reclaimer.reserve_spare(20);
  EXPECT_TRUE(of_no_use);
  EXPECT_EQ(parts_.cache.bytes(), 60u);
  EXPECT_FALSE(parts_.reclaimer.reserve_spare(20));
  EXPECT_EQ(parts_.cache.bytes(), 60u);
  EXPECT_TRUE(parts_.reclaimer.reserve_for_prefetch(20, 10));
  EXPECT_EQ(parts_.cache.bytes(), 40u);
  EXPECT_FALSE(parts_.reclaimer.reserve_spare(20)) << "chunks lack memory";
  parts_.cache.age_pressure();
  EXPECT_FALSE(parts_.reclaimer.reserve_spare(20));
  parts_.cache.age_pressure();
  EXPECT_TRUE(parts_.reclaimer.reserve_spare(20));
}

TEST_F(ReclaimerTest, LeavesRoomForChunksThatAreToStay) {
  cache(0);
  parts_.cache.keep_arrays({parts_.array.get()}, 70);
  EXPECT_FALSE(parts_.reclaimer.reserve_spare(40));
  const auto spare = parts_.reclaimer.reserve_spare(30);
  EXPECT_TRUE(spare);
  EXPECT_EQ(parts_.budget.used(), 50u) << "room is left, not reserved";
  const auto reader = parts_.reclaimer.reserve_for_reader(50);
  EXPECT_TRUE(reader) << "a reader takes it";
  EXPECT_EQ(parts_.cache.bytes(), 20u);
}

TEST_F(ReclaimerTest, GivesUpWhereReadersHoldTheMemory) {
  const auto held = parts_.budget.reserve(90);
  EXPECT_FALSE(parts_.reclaimer.reserve_for_reader(20));
  EXPECT_EQ(parts_.budget.used(), 90u);
}

TEST_F(ReclaimerTest, ReleasesOneBatchThatIsOnlyKept) {
  make(0, true);
  make(1, true);
  make(2, false);
  cache(0);
  EXPECT_TRUE(parts_.reclaimer.release_kept());
  EXPECT_FALSE(has(0));
  EXPECT_TRUE(has(1));
  EXPECT_TRUE(parts_.reclaimer.release_kept());
  EXPECT_FALSE(parts_.reclaimer.release_kept());
  EXPECT_FALSE(has(1));
  EXPECT_TRUE(has(2));
  EXPECT_EQ(parts_.cache.bytes(), 20u);
}

TEST_F(ReclaimerTest, ReleasesAllThatIsKept) {
  make(0, true);
  make(1, false);
  cache(0);
  parts_.reclaimer.release_all();
  EXPECT_EQ(parts_.budget.used(), 0u);
}

}  // namespace reclaimer_test
}  // namespace batchfs
