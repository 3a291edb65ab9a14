#include "engine/pipeline/batches/batch_table.h"

#include <optional>

#include <gtest/gtest.h>

#include "engine/view/samples/mask.h"
#include "tests/unit/engine/pipeline/fake_store.h"
#include "tests/unit/engine/pipeline/raw_format.h"

namespace batchfs {
namespace batch_table_test {

const RawTestFormat kRaw;

class BatchTableTest : public testing::Test {
 protected:
  BatchRequest request(std::int64_t batch) const { return {view_, &kRaw, 0, batch}; }
  BatchTable::Opened open(std::int64_t batch) {
    Waiter waiter{
        [this](const std::shared_ptr<const Batch>&, const std::exception_ptr&) { ++ended_; },
        nullptr, 1};
    return table_.open(request(batch), waiter);
  }
  /// Assembles a record up to its submission.
  std::shared_ptr<Assembly> submit(const BatchTable::RecordPtr& record,
                                   bool* reprioritize = nullptr) {
    const auto begun = table_.begin(record);
    if (!begun) return nullptr;
    const bool must = table_.submitted(record, *begun->assembly, begun->waited);
    if (reprioritize != nullptr) *reprioritize = must;
    return begun->assembly;
  }
  void finish(const BatchTable::RecordPtr& record) {
    const auto completed = table_.complete(record, std::make_shared<Batch>(), false);
    EXPECT_FALSE(completed.assemble_again);
    for (const WaiterId id : completed.waiters) waiters_.take(id);
  }
  /// A batch that is opened and ready.
  void make(std::int64_t batch) { finish_opened(open(batch)); }
  void finish_opened(const BatchTable::Opened& opened) {
    ASSERT_NE(opened.assemble, nullptr);
    ASSERT_NE(submit(opened.assemble), nullptr);
    finish(opened.assemble);
  }

  FakeData data_{10, 4, 6};
  const std::shared_ptr<const View> view_ = data_.view(R"({"window": {"time": 1}, "batch": 2})");
  Counters counters_;
  Log log_;
  Ticker ticker_{[] {}};
  Waiters waiters_{UINT64_MAX, ticker_, counters_, log_};
  bool due_ = false;
  BatchTable table_{waiters_, counters_, [this](const BatchRequest&) { return due_; }};
  int ended_ = 0;
};

TEST_F(BatchTableTest, ABatchGoesFromWantedToReady) {
  const BatchTable::Opened opened = open(0);
  EXPECT_TRUE(opened.first);
  EXPECT_NE(opened.waiter, 0u);
  ASSERT_NE(opened.assemble, nullptr);
  EXPECT_EQ(table_.urgency(*opened.assemble), kReaderWaits);
  EXPECT_EQ(table_.now(), 1u);
  const auto assembly = submit(opened.assemble);
  ASSERT_NE(assembly, nullptr);
  EXPECT_TRUE(table_.is_at_work());
  EXPECT_FALSE(table_.begin(opened.assemble)) << "it is under way";
  const auto batch = std::make_shared<Batch>();
  const auto completed = table_.complete(opened.assemble, batch, false);
  EXPECT_EQ(completed.waiters, std::vector{opened.waiter});
  EXPECT_FALSE(table_.is_at_work());
  const BatchTable::Opened again = open(0);
  EXPECT_FALSE(again.first);
  EXPECT_EQ(again.ready, batch);
  EXPECT_EQ(again.waiter, 0u);
  EXPECT_EQ(table_.now(), 1u);
}

TEST_F(BatchTableTest, ASecondReaderJoinsTheFirst) {
  const BatchTable::Opened first = open(0), second = open(0);
  EXPECT_FALSE(second.first);
  EXPECT_EQ(second.assemble, nullptr);
  EXPECT_EQ(table_.waiters(*first.assemble), 2u);
  EXPECT_EQ(table_.complete(first.assemble, nullptr, false).waiters.size(), 2u);
}

TEST_F(BatchTableTest, AReaderMakesAPrefetchUrgent) {
  const auto expected = table_.expect(request(3), 4, true, false);
  ASSERT_NE(expected.assemble, nullptr);
  EXPECT_EQ(table_.urgency(*expected.assemble), kPrefetch + 4);
  EXPECT_EQ(table_.expect(request(3), 4, true, false).assemble, nullptr)
      << "it is expected already";
  const auto assembly = submit(expected.assemble);
  EXPECT_EQ(assembly->urgency, kPrefetch + 4);
  const BatchTable::Opened opened = open(3);
  EXPECT_EQ(opened.assemble, nullptr);
  EXPECT_EQ(opened.reprioritize, assembly);
  EXPECT_EQ(assembly->urgency, kReaderWaits);
}

TEST_F(BatchTableTest, AnExpectedBatchThatHasNotBegunIsHurriedOnce) {
  const auto expected = table_.expect(request(3), 4, false, false);
  const auto hurried = table_.expect(request(3), 3, false, true);
  EXPECT_EQ(hurried.assemble, expected.assemble);
  EXPECT_EQ(hurried.start, nullptr);
  EXPECT_EQ(table_.expect(request(3), 2, false, true).assemble, nullptr);
  EXPECT_EQ(table_.urgency(*expected.assemble), kPrefetch + 4) << "of its chunks";
  ASSERT_TRUE(table_.begin(hurried.assemble));
  const auto begun = table_.expect(request(4), 4, true, false);
  ASSERT_TRUE(table_.begin(begun.assemble));
  EXPECT_EQ(table_.expect(request(4), 3, true, true).assemble, nullptr) << "it has begun";
  const BatchTable::Opened opened = open(5);
  EXPECT_EQ(table_.expect(request(5), 1, true, true).assemble, nullptr) << "its reader has it made";
}

TEST_F(BatchTableTest, AReaderThatComesWhileAPrefetchIsLaidOutIsNotMissed) {
  const auto expected = table_.expect(request(3), 4, true, false);
  const auto begun = table_.begin(expected.assemble);
  ASSERT_TRUE(begun);
  EXPECT_EQ(open(3).reprioritize, nullptr) << "the scheduler does not know the assembly yet";
  EXPECT_TRUE(table_.submitted(expected.assemble, *begun->assembly, begun->waited));
}

TEST_F(BatchTableTest, ABatchThatOnlyJoinsIsStartedWhenItIsDue) {
  const auto expected = table_.expect(request(3), 9, false, false);
  const auto assembly = submit(expected.assemble);
  EXPECT_FALSE(assembly->started);
  const auto due = table_.expect(request(3), 2, true, false);
  ASSERT_EQ(due.start, expected.assemble);
  ASSERT_EQ(table_.assembly_to_start(due.start), assembly);
  table_.start(due.start, *assembly);
  EXPECT_TRUE(assembly->started);
  EXPECT_EQ(table_.expect(request(3), 1, true, false).start, nullptr);
}

TEST_F(BatchTableTest, ABatchThatIsDueBeforeItIsSubmittedIsStartedThen) {
  const auto expected = table_.expect(request(3), 9, false, false);
  const auto begun = table_.begin(expected.assemble);
  EXPECT_EQ(table_.assembly_to_start(expected.assemble), nullptr);
  EXPECT_TRUE(table_.submitted(expected.assemble, *begun->assembly, begun->waited));
  EXPECT_TRUE(begun->assembly->started);
}

TEST_F(BatchTableTest, TheLastReaderThatLeavesCancelsUnlessTheBatchIsDue) {
  for (const bool due : {false, true}) {
    due_ = due;
    const BatchTable::Opened first = open(due), second = open(due);
    const auto assembly = submit(first.assemble);
    waiters_.cancel(first.waiter);
    EXPECT_FALSE(assembly->cancelled);
    waiters_.cancel(second.waiter);
    EXPECT_EQ(assembly->cancelled, !due);
  }
  EXPECT_EQ(ended_, 4);
}

TEST_F(BatchTableTest, AReaderThatComesWhileChunksAreDroppedGetsTheBatch) {
  const BatchTable::Opened first = open(0);
  const auto assembly = submit(first.assemble);
  waiters_.cancel(first.waiter);
  const BatchTable::Opened second = open(0);
  EXPECT_FALSE(assembly->cancelled);
  const auto completed = table_.complete(first.assemble, nullptr, true);
  EXPECT_TRUE(completed.assemble_again);
  EXPECT_TRUE(waiters_.contains(second.waiter));
  EXPECT_TRUE(table_.begin(first.assemble));
}

TEST_F(BatchTableTest, AFailedBatchIsTriedAgainByTheNextReader) {
  const BatchTable::Opened first = open(0);
  submit(first.assemble);
  table_.complete(first.assemble, nullptr, false);
  const BatchTable::Opened second = open(0);
  EXPECT_NE(second.assemble, nullptr);
  EXPECT_NE(second.assemble, first.assemble);
}

TEST_F(BatchTableTest, FourOpenedBatchesAreKept) {
  for (std::int64_t b = 0; b < 5; ++b) make(b);
  EXPECT_FALSE(table_.is_made(request(0).key()));
  for (std::int64_t b = 1; b < 5; ++b) EXPECT_TRUE(table_.is_made(request(b).key())) << b;
  BatchTable::Dropped dropped;
  EXPECT_TRUE(table_.drop_opened(dropped));
  EXPECT_EQ(dropped.records.size(), 1u);
  EXPECT_TRUE(dropped.cancelled.empty());
  EXPECT_FALSE(table_.is_made(request(1).key()));
}

TEST_F(BatchTableTest, ABatchWhoseFilesAreBeingOpenedStays) {
  const auto make_files = [this](std::int64_t number, std::size_t files) {
    const BatchTable::Opened opened = open(number);
    ASSERT_NE(submit(opened.assemble), nullptr);
    const auto batch = std::make_shared<Batch>();
    batch->files.resize(files);
    for (const WaiterId id : table_.complete(opened.assemble, batch, false).waiters)
      waiters_.take(id);
  };
  const auto is_made = [this](std::int64_t number) {
    return table_.is_made(request(number).key());
  };
  make_files(0, 3);
  make_files(1, 3);
  BatchTable::Dropped dropped;
  EXPECT_TRUE(table_.drop_opened(dropped));  // its reader has gone on
  EXPECT_FALSE(is_made(0));
  EXPECT_FALSE(table_.drop_opened(dropped));
  open(1);
  EXPECT_FALSE(table_.drop_opened(dropped));
  EXPECT_TRUE(is_made(1));
  open(1);
  EXPECT_TRUE(table_.drop_opened(dropped)) << "all of its files were opened";
  EXPECT_FALSE(is_made(1));
  make_files(2, 3);
  EXPECT_TRUE(table_.drop_any_opened(dropped));
  EXPECT_FALSE(is_made(2));
}

TEST_F(BatchTableTest, TheLeastUrgentUnopenedBatchGoesFirst) {
  for (std::int64_t b = 0; b < 3; ++b) {
    const auto expected = table_.expect(request(b), b + 1, true, false);
    submit(expected.assemble);
    finish(expected.assemble);
  }
  const auto joins = table_.expect(request(7), 50, false, false);
  const auto assembly = submit(joins.assemble);
  BatchTable::Dropped dropped;
  ASSERT_TRUE(table_.drop_least_urgent(dropped));
  ASSERT_EQ(dropped.cancelled, std::vector{assembly});
  EXPECT_TRUE(assembly->cancelled);
  ASSERT_TRUE(table_.drop_least_urgent(dropped));
  EXPECT_FALSE(table_.is_made(request(2).key()));
  EXPECT_TRUE(table_.is_made(request(1).key()));
  open(0);
  ASSERT_TRUE(table_.drop_least_urgent(dropped));
  EXPECT_FALSE(table_.drop_least_urgent(dropped)) << "what is left was opened";
}

TEST_F(BatchTableTest, OverdueBatchesAreDropped) {
  const auto none = [](const BatchRequest&) { return false; };
  const auto expected = table_.expect(request(1), 1, true, false);
  submit(expected.assemble);
  finish(expected.assemble);
  EXPECT_TRUE(table_.drop_overdue(none).records.empty());
  const auto wide = data_.view(R"({"window": {"time": 1}, "batch": 1})");
  for (std::int64_t epoch = 0; epoch < 300; ++epoch) {
    Waiter waiter{[](const std::shared_ptr<const Batch>&, const std::exception_ptr&) {}, nullptr,
                  1};
    finish_opened(table_.open({wide, &kRaw, epoch, 0}, waiter));
  }
  EXPECT_EQ(table_.drop_overdue(none).records.size(), 1u);
  EXPECT_FALSE(table_.is_made(request(1).key()));
}

TEST_F(BatchTableTest, BatchesThatAReaderLeavesOutAreDroppedUnlessOneWaitsForThem) {
  for (const std::int64_t batch : {1, 2}) {
    const auto expected = table_.expect(request(batch), batch, true, false);
    submit(expected.assemble);
    finish(expected.assemble);
  }
  const BatchTable::Opened waited = open(3);
  const auto from_two = [](const BatchRequest& one) { return one.batch >= 2; };
  EXPECT_EQ(table_.drop_overdue(from_two).records.size(), 1u);
  EXPECT_TRUE(table_.is_made(request(1).key()));
  EXPECT_FALSE(table_.is_made(request(2).key()));
  EXPECT_TRUE(table_.is_made(request(3).key()));
}

TEST_F(BatchTableTest, DroppingAllSparesWhatReadersWaitFor) {
  make(0);
  const BatchTable::Opened waited = open(1);
  const auto expected = table_.expect(request(2), 1, true, false);
  EXPECT_EQ(table_.drop_all().records.size(), 2u);
  EXPECT_TRUE(table_.is_made(request(1).key()));
  EXPECT_TRUE(table_.begin(waited.assemble));
  EXPECT_FALSE(table_.begin(expected.assemble)) << "it was dropped";
}

TEST_F(BatchTableTest, AQueuedRecordBeginsWhenItGetsMemory) {
  Budget budget(100);
  const BatchTable::Opened opened = open(0);
  table_.begin(opened.assemble);
  table_.queue(opened.assemble);
  EXPECT_FALSE(table_.begin(opened.assemble));
  EXPECT_FALSE(table_.drop_queued(opened.assemble)) << "a reader waits";
  table_.grant(opened.assemble, budget.reserve(10));
  const auto begun = table_.begin(opened.assemble);
  ASSERT_TRUE(begun);
  EXPECT_EQ(begun->granted.bytes(), 10u);
  table_.queue(opened.assemble);
  waiters_.cancel(opened.waiter);
  EXPECT_TRUE(table_.drop_queued(opened.assemble));
  EXPECT_FALSE(table_.is_made(request(0).key()));
}

TEST_F(BatchTableTest, APrefetchWithoutMemoryIsGivenUpUnlessAReaderCame) {
  const auto lonely = table_.expect(request(0), 1, true, false),
             joins = table_.expect(request(1), 9, false, false),
             opened = table_.expect(request(2), 2, true, false);
  for (const auto& expected : {lonely, joins, opened}) ASSERT_TRUE(table_.begin(expected.assemble));
  open(2);
  EXPECT_EQ(table_.give_up(lonely.assemble), BatchTable::GivenUp::dropped_started);
  EXPECT_EQ(table_.give_up(joins.assemble), BatchTable::GivenUp::dropped);
  EXPECT_EQ(table_.give_up(opened.assemble), BatchTable::GivenUp::assemble_again);
  EXPECT_FALSE(table_.is_made(request(0).key()));
  EXPECT_TRUE(table_.is_made(request(2).key()));
}

TEST_F(BatchTableTest, AnExpectedRecordIsDroppedUnlessAReaderOpenedIt) {
  const auto passed = table_.expect(request(0), 1, true, false),
             opened = table_.expect(request(1), 2, true, false);
  open(1);
  table_.drop_expected(passed.assemble);
  table_.drop_expected(opened.assemble);
  EXPECT_FALSE(table_.is_made(request(0).key()));
  EXPECT_TRUE(table_.is_made(request(1).key()));
}

TEST_F(BatchTableTest, NothingBeginsAfterItsStop) {
  const BatchTable::Opened before = open(0);
  table_.stop();
  EXPECT_TRUE(open(1).refused);
  EXPECT_EQ(table_.expect(request(2), 1, true, false).assemble, nullptr);
  const auto begun = table_.begin(before.assemble);
  ASSERT_TRUE(begun);
  EXPECT_EQ(begun->assembly, nullptr);
  EXPECT_FALSE(table_.complete(before.assemble, nullptr, true).assemble_again);
}

}  // namespace batch_table_test
}  // namespace batchfs
