#include "engine/pipeline/arrays/array_reads.h"

#include <future>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/engine/pipeline/parts.h"
#include "tests/unit/eventually.h"

namespace batchfs {
namespace array_reads_test {

const Box kThirdChunk{{8, 0}, {4, 6}};

class ArrayReadsTest : public testing::TestWithParam<bool> {
 protected:
  ArrayReadsTest() { parts_.data.store->asynchronous = GetParam(); }
  ArrayReads::ReadDone done() {
    return [this](std::exception_ptr error) {
      if (error)
        result_.set_exception(error);
      else
        result_.set_value();
    };
  }
  /// The read's error; nullopt if it returned values.
  std::optional<ErrorCode> outcome() {
    try {
      result_.get_future().get();
      return std::nullopt;
    } catch (const Error& error) {
      return error.code();
    }
  }
  WaiterId read_box(ArrayReads::Purpose purpose = ArrayReads::Purpose::reader) {
    return parts_.arrays.read_box(parts_.array, kThirdChunk, nullptr,
                                  reinterpret_cast<std::byte*>(out_->data()), {24, 4}, out_, done(),
                                  purpose);
  }

  Parts parts_;
  const std::shared_ptr<std::vector<std::int32_t>> out_ =
      std::make_shared<std::vector<std::int32_t>>(24, -1);
  std::promise<void> result_;
};
INSTANTIATE_TEST_SUITE_P(Stores, ArrayReadsTest, testing::Bool(), [](const auto& parameter) {
  return parameter.param ? "remote" : "local";
});

TEST_P(ArrayReadsTest, ReadsABox) {
  EXPECT_NE(read_box(), 0u);
  EXPECT_EQ(outcome(), std::nullopt);
  for (int i = 0; i < 24; ++i) EXPECT_EQ((*out_)[static_cast<std::size_t>(i)], 2000 + i);
  EXPECT_TRUE(eventually([&] { return !parts_.arrays.is_at_work(); }));
  EXPECT_EQ(parts_.first_deliveries, 1);
  EXPECT_EQ(parts_.reads, 1);
}

TEST_P(ArrayReadsTest, AScanIsNoReaderThatWasServed) {
  read_box(ArrayReads::Purpose::scan);
  EXPECT_EQ(outcome(), std::nullopt);
  EXPECT_EQ(parts_.first_deliveries, 0);
}

TEST_P(ArrayReadsTest, ACancelledReadEndsAtOnceAndHoldsItsMemoryUntilNothingIsWritten) {
  parts_.data.store->close();
  const std::weak_ptr<void> memory = out_;
  const WaiterId id = read_box();
  EXPECT_EQ(parts_.waiters.count(), 1u);
  EXPECT_TRUE(eventually([&] { return parts_.data.store->asked > 0; })) << "it is under way";
  parts_.waiters.cancel(id);
  EXPECT_EQ(outcome(), ErrorCode::interrupted);
  EXPECT_EQ(parts_.waiters.count(), 0u);
  EXPECT_TRUE(parts_.arrays.is_at_work());
  EXPECT_GT(memory.use_count(), 1);
  parts_.data.store->open();
  EXPECT_TRUE(eventually([&] { return memory.use_count() == 1; }));
  EXPECT_FALSE(parts_.arrays.is_at_work());
}

TEST_P(ArrayReadsTest, ABlockingReadReturnsWhenNothingIsWrittenAnyMore) {
  parts_.data.store->close();
  std::promise<std::optional<ErrorCode>> ended;
  auto future = ended.get_future();
  std::thread reader([&] {
    try {
      parts_.arrays.read_box(parts_.array, kThirdChunk, nullptr,
                             reinterpret_cast<std::byte*>(out_->data()), {24, 4});
      ended.set_value(std::nullopt);
    } catch (const Error& error) {
      ended.set_value(error.code());
    }
  });
  EXPECT_TRUE(eventually([&] { return parts_.data.store->asked > 0; }));
  parts_.waiters.cancel(1);
  EXPECT_EQ(parts_.waiters.count(), 0u);
  EXPECT_EQ(future.wait_for(std::chrono::milliseconds(30)), std::future_status::timeout)
      << "`out` may be written to";
  parts_.data.store->open();
  EXPECT_EQ(future.get(), ErrorCode::interrupted);
  reader.join();
}

TEST_P(ArrayReadsTest, ElementsAreReadToMemoryThatIsCounted) {
  parts_.data.store->close();
  parts_.arrays.read_elements(parts_.array, 20, 20, reinterpret_cast<std::byte*>(out_->data()),
                              out_, done());
  EXPECT_GE(parts_.budget.used(), 20u * 4);
  parts_.data.store->failing = 1;
  parts_.data.store->open();
  EXPECT_EQ(outcome(), ErrorCode::io);
  EXPECT_EQ(parts_.first_deliveries, 0);
}

TEST_P(ArrayReadsTest, CachedChunksAreReadWhereTheyLie) {
  const auto values_of = [](const std::vector<ArrayReads::CachedRun>& runs) {
    std::vector<std::vector<std::int32_t>> values;
    for (const ArrayReads::CachedRun& run : runs) {
      const auto* first = reinterpret_cast<const std::int32_t*>(run.bytes.data());
      values.emplace_back(first, first + run.bytes.size() / 4);
    }
    return values;
  };
  EXPECT_TRUE(parts_.arrays.find_cached(parts_.array, 21, 6).empty());
  for (const std::int64_t chunk : {0, 1}) {
    parts_.scheduler.warm(parts_.array, chunk);
    EXPECT_TRUE(eventually([&] {
      return parts_.cache.holds({parts_.array.get(), chunk}, {{0, 0}, {4, 6}});
    }));
  }
  const auto runs = parts_.arrays.find_cached(parts_.array, 21, 6);
  ASSERT_EQ(values_of(runs),
            (std::vector<std::vector<std::int32_t>>{{21, 22, 23}, {1000, 1001, 1002}}));
  EXPECT_EQ(parts_.arrays.find_cached(parts_.array, 21, 6)[0].bytes.data(), runs[0].bytes.data());
  EXPECT_TRUE(parts_.arrays.find_cached(parts_.array, 40, 20).empty()) << "one of two is cached";
  while (parts_.cache.evict_one()) {
  }
  EXPECT_TRUE(parts_.arrays.find_cached(parts_.array, 21, 6).empty());
  EXPECT_EQ(values_of(runs)[1][2], 1002) << "what was found stays valid";
}

TEST_P(ArrayReadsTest, ReadsBeyondABoundOfMemoryWaitForOthers) {
  // 96 bytes each: two fit into 200.
  parts_.data.store->close();
  std::vector<std::shared_ptr<std::vector<std::int32_t>>> outs;
  std::vector<std::promise<std::exception_ptr>> ends(5);
  std::vector<WaiterId> ids;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    outs.push_back(std::make_shared<std::vector<std::int32_t>>(24, -1));
    ids.push_back(parts_.arrays.read_elements(
        parts_.array, static_cast<std::int64_t>(12 * (i % 3)), 24,
        reinterpret_cast<std::byte*>(outs.back()->data()), outs.back(),
        [&end = ends[i]](std::exception_ptr error) { end.set_value(error); }));
  }
  EXPECT_LT(parts_.budget.used(), 3u * 96 + 2 * 96) << "and two chunks";
  parts_.waiters.cancel(ids[3]);  // while it waits for its turn
  EXPECT_NE(ends[3].get_future().get(), nullptr);
  parts_.data.store->open();
  for (std::size_t i : {0, 1, 2, 4}) {
    EXPECT_EQ(ends[i].get_future().get(), nullptr);
    const auto first = static_cast<std::int32_t>(12 * (i % 3));
    EXPECT_EQ(outs[i]->front(), first < 24 ? first : 1000 + first - 24);
  }
  EXPECT_TRUE(eventually([&] { return !parts_.arrays.is_at_work(); }));
}

TEST_P(ArrayReadsTest, ABoxForWhichThereIsNoMemoryWaitsInTheQueue) {
  Budget::Reservation all = parts_.budget.reserve(parts_.budget.limit());
  std::promise<std::shared_ptr<const Batch>> opened;
  parts_.arrays.open_box(parts_.array, kThirdChunk, "head",
                         [&](std::shared_ptr<const Batch> batch, std::exception_ptr) {
                           opened.set_value(std::move(batch));
                         });
  EXPECT_EQ(parts_.queue.readers(), 1u);
  all.release();
  const auto batch = opened.get_future().get();
  ASSERT_NE(batch, nullptr);
  EXPECT_EQ(batch->files[0].size(), 4u + 24 * 4);
  EXPECT_EQ(parts_.queue.readers(), 0u);
}

TEST_P(ArrayReadsTest, NothingIsReadAfterTheEnd) {
  parts_.waiters.stop();
  EXPECT_EQ(read_box(), 0u);
  EXPECT_EQ(outcome(), ErrorCode::interrupted);
  EXPECT_THROW(parts_.arrays.read_box(parts_.array, kThirdChunk, nullptr,
                                      reinterpret_cast<std::byte*>(out_->data()), {24, 4}),
               Error);
  EXPECT_EQ(parts_.data.store->asked, 0);
}

}  // namespace array_reads_test
}  // namespace batchfs
