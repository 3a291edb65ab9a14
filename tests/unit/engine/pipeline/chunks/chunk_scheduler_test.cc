#include "engine/pipeline/chunks/chunk_scheduler.h"

#include <future>
#include <latch>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/pipeline/chunks/scheduled.h"
#include "tests/unit/eventually.h"

namespace batchfs {
namespace chunk_scheduler_test {

using namespace std::chrono_literals;
using scheduled::kSteps;
using scheduled::kWhole;
using scheduled::kWidth;
using scheduled::Reading;
using scheduled::Scheduled;

/// Keeps all workers of an executor busy until release(), so that all work submitted meanwhile is
/// queued when the first of it begins. Merely posting work that waits is not enough: a worker that
/// has not started yet takes more urgent work first.
class BusyWorkers {
 public:
  BusyWorkers(Executor& executor, int threads) : busy_(threads) {
    const std::shared_future<void> released = release_.get_future().share();
    for (int thread = 0; thread < threads; ++thread)
      executor.post(kReaderWaits, [this, released] {
        busy_.count_down();
        released.wait();
      });
    busy_.wait();
  }
  void release() { release_.set_value(); }

 private:
  std::latch busy_;
  std::promise<void> release_;
};

class ChunkSchedulerTest : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Stores, ChunkSchedulerTest, testing::Bool(), [](const auto& parameter) {
  return parameter.param ? "remote" : "local";
});

TEST_P(ChunkSchedulerTest, OneReadServesAllThatWaitForAChunk) {
  Scheduled s(GetParam());
  Reading first(s.array, {{3, {kWhole}}}), part(s.array, {{3, {{{1, 2}, {2, 3}}}}}),
      both(s.array, {{3, {kWhole}}, {4, {kWhole}}});
  // Chunks decoded into a reader's own memory are not cached: all three must be queued before.
  BusyWorkers workers(s.executor, 2);
  for (Reading* reading : {&first, &part, &both}) s.scheduler.submit(reading->assembly);
  EXPECT_FALSE(first.is_done());
  workers.release();
  for (Reading* reading : {&first, &part, &both}) reading->expect_values();
  EXPECT_EQ(s.data.store->reads.load(), 2);
  EXPECT_EQ(s.counters.chunks_decoded.load(), 2u);
}

TEST_P(ChunkSchedulerTest, WhatWasReadIsKeptForTheNext) {
  Scheduled s(GetParam());
  Reading first(s.array, {{3, {{{1, 2}, {2, 3}}}}}), second(s.array, {{3, {kWhole}}});
  s.scheduler.submit(first.assembly);
  first.expect_values();
  s.scheduler.submit(second.assembly);
  second.expect_values();
  EXPECT_EQ(s.data.store->reads.load(), 1);
}

// Uses of chunks by pairs of steps: each step is y of one sample and x of the next, often of the
// next batch.
TEST_P(ChunkSchedulerTest, ABatchThatTakesAllOfAChunkHoldsItForTheOthers) {
  Scheduled s(GetParam());
  const Box row{{2, 0}, {1, kWidth}};
  Reading part(s.array, {{3, {row}}}), pairs(s.array, {{3, {kWhole, kWhole}}, {4, {kWhole}}}),
      next(s.array, {{4, {kWhole}}, {3, {row, kWhole}}});
  BusyWorkers workers(s.executor, 2);
  for (Reading* reading : {&part, &pairs, &next}) {
    reading->assembly->shares_memory = true;
    s.scheduler.submit(reading->assembly);
  }
  workers.release();
  for (Reading* reading : {&part, &pairs, &next}) reading->expect_values();
  EXPECT_EQ(s.counters.chunks_decoded.load(), 2u);
  EXPECT_EQ(s.cache.bytes(), 0u);  // no memory but that of the batches
  // While one of these batches lives, it serves later readers.
  Reading late(s.array, {{3, {row}}});
  s.scheduler.submit(late.assembly);
  late.expect_values();
  EXPECT_EQ(s.counters.chunks_decoded.load(), 2u);
}

TEST_P(ChunkSchedulerTest, SeveralPartsOfAUseAndOfManyChunks) {
  Scheduled s(GetParam(), "null");  // plain chunks, which can be read in part
  const Box row{{2, 0}, {1, kWidth}};
  Reading same(s.array, {{1, {row, row, row}}}),
      apart(s.array, {{2, {{{0, 0}, {1, 1}}, {{3, 5}, {1, 1}}, {{1, 2}, {2, 2}}}}});
  std::vector<Reading::Piece> pieces;
  for (std::int64_t chunk = 9; chunk >= 0; --chunk) pieces.push_back({chunk, {row, kWhole}});
  Reading all(s.array, pieces);
  for (Reading* reading : {&same, &apart, &all}) {
    s.scheduler.submit(reading->assembly);
    reading->expect_values();
  }
}

TEST_P(ChunkSchedulerTest, NothingToReadIsDoneAtOnce) {
  Scheduled s(GetParam());
  Reading nothing(s.array, {});
  s.scheduler.submit(nothing.assembly);
  EXPECT_TRUE(nothing.is_done());
  nothing.expect_values();
}

TEST_P(ChunkSchedulerTest, WhoIsNotStartedTakesWhatOthersBring) {
  Scheduled s(GetParam());
  Reading joins(s.array, {{3, {{{1, 0}, {1, kWidth}}}}, {4, {kWhole}}}, kPrefetch + 9, false),
      reads(s.array, {{3, {kWhole}}});
  s.scheduler.submit(joins.assembly);
  s.scheduler.submit(reads.assembly);
  reads.expect_values();
  EXPECT_FALSE(joins.is_done());
  EXPECT_EQ(s.data.store->reads.load(), 1) << "nobody had chunk 4 brought";
  joins.assembly->started = true;
  s.scheduler.reprioritize(joins.assembly);
  joins.expect_values();
  EXPECT_EQ(s.data.store->reads.load(), 2);
}

TEST_P(ChunkSchedulerTest, APrefetchTakesWhatIsKeptAtOnce) {
  Scheduled s(GetParam());
  // A chunk that is read straight to its place is not cached.
  Reading reads(s.array, {{3, {{{1, 2}, {2, 3}}}}}),
      ahead(s.array, {{3, {kWhole}}}, kPrefetch + 9, false);
  s.scheduler.submit(reads.assembly);
  reads.expect_values();
  s.scheduler.submit(ahead.assembly);
  EXPECT_TRUE(ahead.is_done());
  ahead.expect_values();
}

TEST_P(ChunkSchedulerTest, WhoIsCancelledIsInterruptedAndTheOthersAreServed) {
  Scheduled s(GetParam());
  Reading leaves(s.array, {{3, {kWhole}}, {4, {kWhole}}}, kPrefetch + 9, false),
      stays(s.array, {{4, {kWhole}}}, kPrefetch + 9, false);
  s.scheduler.submit(leaves.assembly);
  s.scheduler.submit(stays.assembly);
  leaves.assembly->cancelled = true;
  s.scheduler.reprioritize(leaves.assembly);
  EXPECT_EQ(leaves.expect_error().code(), ErrorCode::interrupted);
  EXPECT_FALSE(stays.is_done());
  EXPECT_EQ(s.data.store->reads.load(), 0);
  stays.assembly->started = true;
  s.scheduler.reprioritize(stays.assembly);
  stays.expect_values();
  EXPECT_EQ(s.data.store->reads.load(), 1);
}

TEST_P(ChunkSchedulerTest, AFailureIsOfItsChunkAndIsToldOnce) {
  Scheduled s(GetParam());
  s.data.store->failing = 3;
  Reading fails(s.array, {{3, {kWhole}}, {4, {kWhole}}}), reads(s.array, {{4, {kWhole}}});
  s.scheduler.submit(fails.assembly);
  s.scheduler.submit(reads.assembly);
  const Error error = fails.expect_error();
  EXPECT_EQ(error.code(), ErrorCode::io);
  EXPECT_THAT(error.where(), testing::StartsWith("v/3.0"));
  reads.expect_values();
  EXPECT_EQ(s.counters.errors.load(), 1u);
  EXPECT_THAT(s.log.text(), testing::HasSubstr("v/3.0"));
  s.data.store->failing = -1;
  Reading again(s.array, {{3, {kWhole}}});
  s.scheduler.submit(again.assembly);
  again.expect_values();
}

TEST_P(ChunkSchedulerTest, WhoJoinsAFailingReadGetsOneOfHisOwn) {
  Scheduled s(GetParam());
  s.data.store->failing = 3;
  s.data.store->close();
  Reading first(s.array, {{3, {kWhole}}});
  s.scheduler.submit(first.assembly);
  std::this_thread::sleep_for(20ms);  // it runs, most likely; else both fail together
  Reading second(s.array, {{3, {kWhole}}});
  s.scheduler.submit(second.assembly);
  s.data.store->open();
  EXPECT_EQ(first.expect_error().code(), ErrorCode::io);
  EXPECT_EQ(second.expect_error().code(), ErrorCode::io);
}

TEST_P(ChunkSchedulerTest, AMissingChunkIsFillValue) {
  Scheduled s(GetParam());
  s.data.store->missing = 3;
  std::vector<std::int32_t> out(24, -1);
  const auto assembly = std::make_shared<Assembly>();
  assembly->uses.push_back({s.array, 3, 0, 1});
  assembly->parts.push_back(
      {kWhole, reinterpret_cast<std::byte*>(out.data()), c_strides(kWhole.shape, 4), nullptr});
  std::promise<std::exception_ptr> promise;
  assembly->finished = [&](std::exception_ptr error) { promise.set_value(error); };
  s.scheduler.submit(assembly);
  EXPECT_EQ(promise.get_future().get(), nullptr);
  EXPECT_THAT(out, testing::Each(0));
}

TEST_P(ChunkSchedulerTest, InterruptEndsWhatWaitsAndWhatComes) {
  Scheduled s(GetParam());
  s.data.store->close();
  Reading running(s.array, {{3, {kWhole}}, {4, {kWhole}}, {5, {kWhole}}, {6, {kWhole}}}),
      waiting(s.array, {{7, {kWhole}}, {3, {kWhole}}}, kPrefetch + 9, false);
  s.scheduler.submit(running.assembly);
  s.scheduler.submit(waiting.assembly);
  s.stop();
  EXPECT_EQ(running.expect_error().code(), ErrorCode::interrupted);
  EXPECT_EQ(waiting.expect_error().code(), ErrorCode::interrupted);
  Reading late(s.array, {{8, {kWhole}}, {9, {kWhole}}});
  s.scheduler.submit(late.assembly);
  EXPECT_TRUE(late.is_done());
  EXPECT_EQ(late.expect_error().code(), ErrorCode::interrupted);
  s.scheduler.warm(s.array, 2);
  EXPECT_EQ(s.counters.errors.load(), 0u) << "nothing is wrong";
}

TEST_P(ChunkSchedulerTest, WarmBringsAChunkIntoTheCache) {
  Scheduled s(GetParam());
  s.scheduler.warm(s.array, 3);
  s.scheduler.warm(s.array, 3);
  EXPECT_TRUE(eventually([&] { return s.cache.holds({s.array.get(), 3}, kWhole); }));
  s.scheduler.warm(s.array, 3);
  Reading reads(s.array, {{3, {kWhole}}});
  s.scheduler.submit(reads.assembly);
  reads.expect_values();
  EXPECT_EQ(s.data.store->reads.load(), 1);
}

TEST_P(ChunkSchedulerTest, WarmTakesFreeMemoryOnly) {
  Scheduled s(GetParam());
  const Budget::Reservation all = s.budget.reserve(s.budget.limit());
  s.scheduler.warm(s.array, 3);
  Reading reads(s.array, {{4, {kWhole}}});
  s.scheduler.submit(reads.assembly);
  reads.expect_values();  // requests in flight still complete
  s.stop();
  EXPECT_EQ(s.data.store->reads.load(), 1);
}

TEST_P(ChunkSchedulerTest, LittleMemoryIsTakenFromTheCache) {
  Scheduled s(GetParam());
  const Budget::Reservation most = s.budget.reserve(s.budget.limit() - 500);
  for (std::int64_t chunk = 0; chunk < 10; ++chunk) {
    Reading reads(s.array, {{chunk, {{{0, 0}, {2, 3}}}}});
    s.scheduler.submit(reads.assembly);
    reads.expect_values();
  }
  EXPECT_TRUE(eventually([&] { return s.budget.used() <= s.budget.limit(); }));
  EXPECT_GT(s.counters.chunk_cache_evictions.load(), 0u);
}

TEST(ChunkScheduler, TheMostUrgentComesFirst) {
  Scheduled s(false, kWholeChunks, 1);
  s.data.store->close();
  Reading first(s.array, {{0, {kWhole}}});
  s.scheduler.submit(first.assembly);
  std::this_thread::sleep_for(20ms);
  std::mutex mutex;
  std::vector<int> order;
  std::vector<std::unique_ptr<Reading>> readings;
  for (const int urgency : {5, 3, 9, 1, 7}) {
    readings.push_back(std::make_unique<Reading>(
        s.array, std::vector<Reading::Piece>{{urgency, {kWhole}}}, kPrefetch + urgency));
    auto& assembly = *readings.back()->assembly;
    assembly.finished = [&, urgency,
                         done = std::move(assembly.finished)](std::exception_ptr error) {
      {
        const std::lock_guard lock(mutex);
        order.push_back(urgency);
      }
      done(error);
    };
    s.scheduler.submit(readings.back()->assembly);
  }
  readings[2]->assembly->urgency = kReaderWaits;  // a reader came for chunk 9
  s.scheduler.reprioritize(readings[2]->assembly);
  s.data.store->open();
  for (auto& reading : readings) reading->expect_values();
  EXPECT_EQ(order, (std::vector<int>{9, 1, 3, 5, 7}));
}

TEST(ChunkScheduler, AnOvertakenTaskLeavesNothingInTheQueue) {
  Scheduled s(false, kWholeChunks, 1);
  // Returns who holds the array once chunk `number` is read and another reader waits.
  const auto holders = [&s](std::int64_t number, Urgency before) {
    BusyWorkers first(s.executor, 1);
    Reading reading(s.array, {{number, {kWhole}}}, before);
    s.scheduler.submit(reading.assembly);
    reading.assembly->urgency = kReaderWaits;
    s.scheduler.reprioritize(reading.assembly);
    struct Promises {
      std::promise<void> begun, hold;
    };
    const auto other = std::make_shared<Promises>();  // its worker leaves it later
    s.executor.post(kReaderWaits, [other, released = other->hold.get_future().share()] {
      other->begun.set_value();
      released.wait();
    });
    first.release();
    other->begun.get_future().wait();
    reading.expect_values();
    const long count = s.array.use_count();
    other->hold.set_value();
    return count;
  };
  const long at_once = holders(1, kReaderWaits);
  EXPECT_EQ(holders(2, kPrefetch + 5), at_once);
}

TEST(ChunkScheduler, RequestsAreSetGoingBeforeAnythingIsDecoded) {
  Scheduled s(true, kWholeChunks, 1);
  BusyWorkers workers(s.executor, 1);
  std::promise<int> asked;
  s.executor.post(kReaderWaits, [&] {  // in the place of a chunk that is decoded for a reader
    for (int i = 0; i < 1000 && s.data.store->asked < 2; ++i) std::this_thread::sleep_for(1ms);
    asked.set_value(s.data.store->asked);
  });
  Reading waited(s.array, {{1, {kWhole}}}), later(s.array, {{2, {kWhole}}}, kPrefetch + 5);
  s.scheduler.submit(waited.assembly);
  s.scheduler.submit(later.assembly);
  workers.release();
  EXPECT_EQ(asked.get_future().get(), 2);
  waited.expect_values();
  later.expect_values();
}

TEST(ChunkScheduler, WhatHasArrivedIsDecodedSoonerWhenAReaderComes) {
  Scheduled s(true, kWholeChunks, 1);
  s.data.store->close();
  Reading sooner(s.array, {{1, {kWhole}}}, kPrefetch + 1),
      later(s.array, {{2, {kWhole}}}, kPrefetch + 2);
  std::mutex mutex;
  std::vector<int> order;
  const auto note = [&](Reading& reading, int name) {
    reading.assembly->finished =
        [&, name, done = std::move(reading.assembly->finished)](std::exception_ptr error) {
          {
            const std::lock_guard lock(mutex);
            order.push_back(name);
          }
          done(error);
        };
    s.scheduler.submit(reading.assembly);
  };
  note(sooner, 1);
  note(later, 2);
  ASSERT_TRUE(eventually([&] { return s.data.store->asked == 2; }));
  BusyWorkers workers(s.executor, 1);
  s.data.store->open();
  s.scheduler.wait();  // both are in the queue
  later.assembly->urgency = kReaderWaits;
  s.scheduler.reprioritize(later.assembly);
  workers.release();
  sooner.expect_values();
  later.expect_values();
  EXPECT_EQ(order, (std::vector<int>{2, 1}));
}

TEST(ChunkScheduler, SaysWhatMemoryIsNeededAhead) {
  constexpr std::uint64_t kChunk = kSteps * kWidth * 4;
  const Box row{{1, 0}, {1, kWidth}};
  {
    Scheduled local(false);
    EXPECT_EQ(local.scheduler.memory_ahead(*Reading(local.array, {{3, {row}}}).assembly, false),
              0u);
  }
  Scheduled plain(true, "null");
  Reading parts(plain.array, {{3, {row}}, {4, {row, {{3, 0}, {1, kWidth}}}}});
  EXPECT_EQ(plain.scheduler.memory_ahead(*parts.assembly, false), 24u + 72u)
      << "a row; three rows, of which two are needed";
  Scheduled whole(true);
  Reading ahead(whole.array, {{3, {row}}, {4, {row}}}, kPrefetch, false);
  EXPECT_EQ(whole.scheduler.memory_ahead(*ahead.assembly, false), 2 * kChunk);
  EXPECT_EQ(whole.scheduler.memory_ahead(*ahead.assembly, true), 0u)
      << "it is not submitted: all was served";
  whole.scheduler.submit(ahead.assembly);
  EXPECT_EQ(whole.scheduler.memory_ahead(*ahead.assembly, true), 2 * kChunk);
  Reading reads(whole.array, {{3, {kWhole}}});
  whole.scheduler.submit(reads.assembly);
  reads.expect_values();
  EXPECT_EQ(whole.scheduler.memory_ahead(*ahead.assembly, true), kChunk);
  EXPECT_EQ(
      whole.scheduler.memory_ahead(*Reading(whole.array, {{3, {row}}, {5, {row}}}).assembly, false),
      kChunk)
      << "chunk 3 is kept";
}

}  // namespace chunk_scheduler_test
}  // namespace batchfs
