#include "engine/pipeline/batches/batch_assembler.h"

#include <cstring>
#include <future>

#include <gtest/gtest.h>

#include "engine/view/tensors/tensor_set.h"
#include "tests/unit/engine/pipeline/parts.h"
#include "tests/unit/engine/view/wrong_view.h"
#include "tests/unit/eventually.h"

namespace batchfs {
namespace batch_assembler_test {

using Result = std::pair<std::shared_ptr<const Batch>, std::exception_ptr>;

class BatchAssemblerTest : public testing::Test {
 protected:
  std::future<Result> open(std::int64_t number, WaiterId* id = nullptr) {
    const auto promise = std::make_shared<std::promise<Result>>();
    Waiter waiter{[promise](std::shared_ptr<const Batch> batch, std::exception_ptr error) {
                    promise->set_value({std::move(batch), error});
                  },
                  nullptr, Trace::now()};
    const BatchTable::Opened opened = parts_.table.open(parts_.request(number), waiter);
    if (id != nullptr) *id = opened.waiter;
    if (opened.assemble != nullptr) parts_.assembler.post(opened.assemble);
    return promise->get_future();
  }

  Parts parts_{250};  // two batches of 96 bytes, and a chunk
};

TEST_F(BatchAssemblerTest, AWaiterGetsItsBatchSealedAndCounted) {
  const auto [batch, error] = open(2).get();
  ASSERT_FALSE(error);
  ASSERT_EQ(batch->files.size(), 1u);
  std::int32_t value;
  std::memcpy(&value, batch->files[0].data(), 4);
  EXPECT_EQ(value, 2000);
  EXPECT_EQ(batch->view, parts_.view);
  EXPECT_EQ(batch->reservation.bytes(), parts_.files.memory_of(96));
  EXPECT_EQ(parts_.counters.batches_assembled, 1u);
  EXPECT_EQ(parts_.counters.reader_waits, 1u);
  EXPECT_EQ(parts_.counters.batches_prefetched, 0u);
}

TEST_F(BatchAssemblerTest, AnErrorGoesToTheWaiterAndTheLog) {
  parts_.data.store->failing = 2;
  const auto [batch, error] = open(2).get();
  EXPECT_EQ(batch, nullptr);
  ASSERT_TRUE(error);
  EXPECT_EQ(error_of(error).code(), ErrorCode::io);
  EXPECT_NE(parts_.log.text().find("epoch 0 batch 2 failed"), std::string::npos)
      << parts_.log.text();
  EXPECT_TRUE(eventually([&] { return parts_.budget.used() == 0; }));
}

TEST_F(BatchAssemblerTest, AWrongPlanIsAnErrorOfItsBatchAndWritesNothing) {
  for (const std::int64_t offset : {std::int64_t{-4}, std::int64_t{4}, INT64_MAX / 2}) {
    const auto view =
        wrong_view(parts_.data.dataset, R"({"window": {"time": 1}, "batch": 4})",
                   [offset](TensorSet& tensors) { tensors.placements[0].base = offset; });
    BatchRequest request = parts_.request(0);
    request.view = view;
    const auto promise = std::make_shared<std::promise<Result>>();
    Waiter waiter{[promise](std::shared_ptr<const Batch> batch, std::exception_ptr error) {
                    promise->set_value({std::move(batch), error});
                  },
                  nullptr, Trace::now()};
    parts_.assembler.post(parts_.table.open(request, waiter).assemble);
    const auto [batch, error] = promise->get_future().get();
    EXPECT_EQ(batch, nullptr);
    ASSERT_TRUE(error);
    EXPECT_EQ(error_of(error).code(), ErrorCode::internal);
    EXPECT_EQ(to_errno(error_of(error).code()), EIO);
    EXPECT_NE(parts_.log.text().find("the plan of the batch is wrong in 'v'"), std::string::npos)
        << parts_.log.text();
    EXPECT_TRUE(eventually([&] { return parts_.budget.used() == 0; }));
  }
}

TEST_F(BatchAssemblerTest, AReaderQueuesForMemoryAndAPrefetchIsGivenUp) {
  Budget::Reservation all = parts_.budget.reserve(250);
  auto waiting = open(0);
  EXPECT_TRUE(eventually([&] { return parts_.queue.readers() == 1; }));
  const auto expected = parts_.table.expect(parts_.request(1), 1, true, false);
  parts_.assembler.post(expected.assemble);
  EXPECT_TRUE(eventually([&] { return !parts_.table.is_made(parts_.request(1).key()); }));
  all.release();
  EXPECT_FALSE(waiting.get().second);
}

TEST_F(BatchAssemblerTest, TheBatchItselfIsNoReasonToKeepItsChunks) {
  Parts parts;
  parts.data.store->asynchronous = true;  // as remote: uncompressed local chunks are never kept
  for (const std::int64_t number : {1, 2})
    parts.look_ahead.look(
        {{1, parts.request(number)}}, 0, [](const BatchRequest&) { return false; }, 1);
  const auto promise = std::make_shared<std::promise<void>>();
  Waiter waiter{
      [promise](std::shared_ptr<const Batch>, std::exception_ptr) { promise->set_value(); },
      nullptr, Trace::now()};
  const BatchTable::Opened opened = parts.table.open(parts.request(1), waiter);
  parts.assembler.post(opened.assemble);
  promise->get_future().get();
  EXPECT_EQ(parts.counters.batches_assembled, 1u);
  EXPECT_EQ(parts.cache.bytes(), 0u);
}

TEST_F(BatchAssemblerTest, APrefetchIsCountedWhenItIsBegun) {
  const auto expected = parts_.table.expect(parts_.request(1), 1, true, false);
  parts_.assembler.post(expected.assemble);
  EXPECT_TRUE(eventually([&] { return parts_.counters.batches_assembled == 1; }));
  EXPECT_EQ(parts_.counters.batches_prefetched, 1u);
  EXPECT_EQ(parts_.counters.reader_waits, 0u);
}

TEST_F(BatchAssemblerTest, AReaderThatComesWhileItsChunksAreDroppedIsServed) {
  for (int i = 0; i < 10; ++i) {
    parts_.data.store->close();
    WaiterId id = 0;
    auto leaving = open(i, &id);
    parts_.waiters.cancel(id);
    auto again = open(i);
    parts_.data.store->open();
    EXPECT_TRUE(leaving.get().second);
    EXPECT_FALSE(again.get().second) << i;
  }
}

TEST_F(BatchAssemblerTest, ABatchLargerThanTheBudgetIsRefused) {
  Parts small(10);
  const auto promise = std::make_shared<std::promise<Result>>();
  Waiter waiter{[promise](std::shared_ptr<const Batch> batch, std::exception_ptr error) {
                  promise->set_value({std::move(batch), error});
                },
                nullptr, 1};
  small.assembler.post(small.table.open(small.request(0), waiter).assemble);
  EXPECT_EQ(error_of(promise->get_future().get().second).code(), ErrorCode::no_memory);
}

}  // namespace batch_assembler_test
}  // namespace batchfs
