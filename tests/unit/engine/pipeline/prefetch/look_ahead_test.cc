#include "engine/pipeline/prefetch/look_ahead.h"

#include <thread>

#include <gtest/gtest.h>

#include "engine/dataset/dataset.h"
#include "tests/unit/engine/pipeline/fake_store.h"
#include "tests/unit/engine/pipeline/raw_format.h"

namespace batchfs {
namespace look_ahead_test {

const RawTestFormat kRaw;
constexpr std::uint64_t kMuchMemory = 1 << 30;
constexpr std::int64_t kAll = 1'000'000;

bool none(const BatchRequest&) { return false; }

/// A view over chunks of 96 bytes, and a cache that gets their uses.
class LookAheadTest : public testing::Test {
 protected:
  explicit LookAheadTest(std::int64_t chunks = 10) : data_(chunks, 4, 6) {}

  std::shared_ptr<const View> view(const std::string& json) const { return data_.view(json); }

  /// The requests for batches [first, end), which come after a reader at batch 0.
  std::vector<Prefetcher::Ahead> ahead(const std::shared_ptr<const View>& view, std::int64_t first,
                                       std::int64_t end) const {
    std::vector<Prefetcher::Ahead> all;
    for (std::int64_t b = first; b < end; ++b) all.push_back({b, BatchRequest{view, &kRaw, 0, b}});
    return all;
  }
  std::size_t uses(const View& view, std::int64_t chunk) const {
    return cache_.uses({view.variables()[0]->array.get(), chunk});
  }

  FakeData data_;
  Counters counters_;
  ChunkCache cache_{counters_};
};

TEST_F(LookAheadTest, TellsTheCacheWhatIsUsedUntilItIsForgotten) {
  const auto v = view(R"({"window": {"time": 1}, "batch": 2})");  // two batches in a chunk
  LookAhead look_ahead(cache_, kMuchMemory);
  look_ahead.look(ahead(v, 1, 6), 100, none, kAll);
  EXPECT_EQ(uses(*v, 0), 1u);
  EXPECT_EQ(uses(*v, 1), 2u);
  EXPECT_EQ(uses(*v, 2), 2u);
  EXPECT_EQ(uses(*v, 3), 0u);
  look_ahead.look(ahead(v, 1, 6), 101, none, kAll);  // again: it knows
  EXPECT_EQ(uses(*v, 1), 2u);
  look_ahead.forget(BatchRequest{v, &kRaw, 0, 2}.key());
  EXPECT_EQ(uses(*v, 1), 1u);
  look_ahead.forget(BatchRequest{v, &kRaw, 0, 2}.key());
  look_ahead.forget(BatchRequest{v, &kRaw, 0, 9}.key());
  EXPECT_EQ(uses(*v, 1), 1u);
  for (std::int64_t b = 1; b < 6; ++b) look_ahead.forget(BatchRequest{v, &kRaw, 0, b}.key());
  for (std::int64_t chunk = 0; chunk < 10; ++chunk) EXPECT_EQ(uses(*v, chunk), 0u) << chunk;
}

TEST_F(LookAheadTest, WhatHasBegunIsNoLongerAhead) {
  const auto v = view(R"({"window": {"time": 1}, "batch": 2})");
  const ChunkKey chunk{v->variables()[0]->array.get(), 1};
  LookAhead look_ahead(cache_, kMuchMemory);
  look_ahead.look(ahead(v, 2, 4), 100, none, kAll);  // both use chunk 1
  look_ahead.begin(BatchRequest{v, &kRaw, 0, 2}.key());
  EXPECT_EQ(cache_.next_use(chunk), 103u);
  look_ahead.begin(BatchRequest{v, &kRaw, 0, 3}.key());
  EXPECT_EQ(cache_.next_use(chunk), std::nullopt);
  look_ahead.begin(BatchRequest{v, &kRaw, 0, 3}.key());  // again, as after an error
  for (const std::int64_t b : {2, 3}) look_ahead.forget(BatchRequest{v, &kRaw, 0, b}.key());
  look_ahead.look(ahead(v, 2, 3), 100, none, kAll);
  EXPECT_EQ(uses(*v, 1), 1u);
}

TEST_F(LookAheadTest, NothingIsLeftOfABatchWhoseReaderCameWhileItWasPlanned) {
  const auto v = view(R"({"window": {"time": 1}, "batch": 4})");
  LookAhead look_ahead(cache_, kMuchMemory);
  int asked = 0;
  look_ahead.look(
      ahead(v, 1, 2), 100, [&](const BatchRequest&) { return ++asked > 1; }, kAll);
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(uses(*v, 1), 0u);
}

TEST_F(LookAheadTest, UsesLieAtTheReadersTimeAndTheBatchesDistance) {
  const auto v = view(R"({"window": {"time": 1}, "batch": 4})");
  LookAhead look_ahead(cache_, kMuchMemory);
  look_ahead.look(ahead(v, 2, 5), 100, none, kAll);  // chunks 2, 3, 4 at 102, 103, 104
  cache_.set_horizon(103, false);
  EXPECT_EQ(uses(*v, 2), 1u);
  EXPECT_EQ(uses(*v, 3), 1u);
  EXPECT_EQ(uses(*v, 4), 0u);
}

TEST_F(LookAheadTest, RanksReadTheSameBatches) {
  const auto v = view(R"({"window": {"time": 1}, "batch": 4})");
  LookAhead look_ahead(cache_, kMuchMemory);
  look_ahead.look({{1, BatchRequest{v, &kRaw, 0, 1, 1, 2}}}, 0, none, kAll);
  EXPECT_EQ(uses(*v, 3), 1u);
  look_ahead.look({{1, BatchRequest{v, &kRaw, 0, 3}}}, 0, none, kAll);
  EXPECT_EQ(uses(*v, 3), 1u) << "batch 1 of rank 1 of 2 is batch 3";
  look_ahead.look({{1, BatchRequest{v, &kRaw, 1, 3}}}, 0, none, kAll);
  EXPECT_EQ(uses(*v, 3), 2u) << "another epoch";
}

TEST_F(LookAheadTest, BatchesThatAreMadeArePassedOver) {
  const auto v = view(R"({"window": {"time": 1}, "batch": 4})");
  LookAhead look_ahead(cache_, kMuchMemory);
  look_ahead.look(
      ahead(v, 1, 5), 0, [](const BatchRequest& request) { return request.batch % 2 == 0; }, kAll);
  EXPECT_EQ(uses(*v, 1), 1u);
  EXPECT_EQ(uses(*v, 2), 0u);
  EXPECT_EQ(uses(*v, 3), 1u);
  EXPECT_EQ(uses(*v, 4), 0u);
}

TEST_F(LookAheadTest, ACallPlansSomeBatchesAndReportsWhetherThoseWereAll) {
  const auto v = view(R"({"window": {"time": 1}, "batch": 4})");
  LookAhead look_ahead(cache_, kMuchMemory);
  EXPECT_FALSE(look_ahead.look(ahead(v, 1, 6), 0, none, 2));
  EXPECT_EQ(uses(*v, 2), 1u);
  EXPECT_EQ(uses(*v, 3), 0u);
  EXPECT_FALSE(look_ahead.look(ahead(v, 1, 6), 0, none, 2));
  EXPECT_TRUE(look_ahead.look(ahead(v, 1, 6), 0, none, 2)) << "the fifth was the last";
  EXPECT_EQ(uses(*v, 5), 1u);
  EXPECT_TRUE(look_ahead.look({}, 0, none, 2));
}

TEST_F(LookAheadTest, NobodyIsCalledWithTheLockHeld) {
  const auto v = view(R"({"window": {"time": 1}, "batch": 4})");
  LookAhead look_ahead(cache_, kMuchMemory);
  look_ahead.look(
      ahead(v, 1, 5), 0,
      [&](const BatchRequest&) {
        look_ahead.forget(BatchRequest{v, &kRaw, 0, 9}.key());  // would wait for ever
        return false;
      },
      kAll);
  EXPECT_EQ(uses(*v, 4), 1u);
}

TEST_F(LookAheadTest, ChunksOfArraysThatStayBoundNoHorizon) {
  const auto v = view(R"({"window": {"time": 1}, "batch": 2})");
  LookAhead look_ahead(cache_, 2 * 3 * 96);
  look_ahead.look(ahead(v, 1, 16), 0, none, kAll);
  look_ahead.find_horizon();
  EXPECT_TRUE(look_ahead.shares_beyond_memory());
  cache_.keep_arrays({v->variables()[0]->array.get()}, 960);
  look_ahead.find_horizon();
  EXPECT_FALSE(look_ahead.shares_beyond_memory());
  EXPECT_EQ(uses(*v, 7), 2u);
}

TEST_F(LookAheadTest, TheHorizonIsWhereHalfOfTheMemoryIsFull) {
  const auto v = view(R"({"window": {"time": 1}, "batch": 4})");
  LookAhead look_ahead(cache_, 2 * 3 * 96);
  look_ahead.look(ahead(v, 1, 8), 0, none, kAll);
  look_ahead.find_horizon();
  for (std::int64_t chunk = 1; chunk < 8; ++chunk)
    EXPECT_EQ(uses(*v, chunk), chunk <= 4 ? 1u : 0u) << chunk;
  EXPECT_FALSE(look_ahead.shares_beyond_memory()) << "each chunk is used once";
  for (std::int64_t b = 1; b < 5; ++b) look_ahead.forget(BatchRequest{v, &kRaw, 0, b}.key());
  look_ahead.find_horizon();
  EXPECT_EQ(uses(*v, 7), 1u);
}

TEST_F(LookAheadTest, SaysWhetherAllChunksOfTheArraysCanBeKept) {
  const auto v = view(
      R"({"window": {"time": 1}, "batch": 4})");  // ten chunks of 96 bytes, of which two are ahead
  for (const std::uint64_t memory : {10 * 96 / 3 * 4, 10 * 96 / 3 * 4 - 2}) {
    LookAhead look_ahead(cache_, memory);
    look_ahead.look(ahead(v, 1, 3), 0, none, kAll);
    look_ahead.find_horizon();
    EXPECT_EQ(cache_.keeps_all(), memory == 10 * 96 / 3 * 4) << memory;
  }
}

TEST_F(LookAheadTest, SeesThatBatchesShareChunksThatDoNotFit) {
  const auto v = view(R"({"window": {"time": 1}, "batch": 2})");  // each chunk is used twice
  LookAhead little(cache_, 2 * 96), much(cache_, kMuchMemory);
  for (LookAhead* look_ahead : {&little, &much}) {
    look_ahead->look(ahead(v, 0, 20), 0, none, kAll);
    look_ahead->find_horizon();
  }
  EXPECT_TRUE(little.shares_beyond_memory());
  EXPECT_FALSE(much.shares_beyond_memory());
  // Batches that join chunks are no longer ahead: 14 uses of 10 chunks are enough now, 10 are not.
  for (std::int64_t b = 0; b < 12; b += 2) little.forget(BatchRequest{v, &kRaw, 0, b}.key());
  little.find_horizon();
  EXPECT_TRUE(little.shares_beyond_memory());
  for (std::int64_t b = 12; b < 20; b += 2) little.forget(BatchRequest{v, &kRaw, 0, b}.key());
  little.find_horizon();
  EXPECT_FALSE(little.shares_beyond_memory());
}

TEST_F(LookAheadTest, PlansSoManyBatchesAtOnce) {
  const auto v = view(R"({"window": {"time": 1}, "batch": 4})");  // a batch is a chunk
  LookAhead look_ahead(cache_, kMuchMemory);
  look_ahead.look(ahead(v, 1, 9), 0, none, 3);
  EXPECT_EQ(uses(*v, 3), 1u);
  EXPECT_EQ(uses(*v, 4), 0u);
  look_ahead.look(ahead(v, 1, 9), 0, none, 3);
  EXPECT_EQ(uses(*v, 6), 1u) << "those that it knows do not count";
  EXPECT_EQ(uses(*v, 7), 0u);
}

/// Four hundred chunks of four batches each.
class LongLookAheadTest : public LookAheadTest {
 protected:
  LongLookAheadTest() : LookAheadTest(400) {}
};

TEST_F(LongLookAheadTest, TheOldestUsesOfStreamsThatJumpedGo) {
  const auto v = view(R"({"window": {"time": 1}, "batch": 1})");
  LookAhead look_ahead(cache_, kMuchMemory);
  look_ahead.look(ahead(v, 0, 4 * LookAhead::kBatches), 0, none, kAll);
  EXPECT_EQ(uses(*v, 0), 4u);
  look_ahead.look(ahead(v, 4 * LookAhead::kBatches, 4 * LookAhead::kBatches + 6), 10, none, kAll);
  EXPECT_EQ(uses(*v, 0), 0u);
  EXPECT_EQ(uses(*v, 1), 2u);
  EXPECT_EQ(uses(*v, 2), 4u);
}

TEST_F(LongLookAheadTest, LookingForManyStreamsEnds) {
  LookAhead look_ahead(cache_, kMuchMemory);
  constexpr std::int64_t kStreams = 12, kAtOnce = 8;
  std::vector<std::shared_ptr<const View>> views;
  for (std::int64_t stream = 0; stream < kStreams; ++stream)
    views.push_back(view(R"({"window": {"time": 1}, "batch": 4})"));
  // All at one time, as where a reader opens the first batch of each, and at later ones.
  for (const std::uint64_t step : {0, 1})
    for (std::int64_t stream = 0; stream < kStreams; ++stream) {
      const std::uint64_t now = 100 + static_cast<std::uint64_t>(stream) * step;
      int calls = 1;
      while (
          !look_ahead.look(ahead(views[static_cast<std::size_t>(stream)], 1, LookAhead::kBatches),
                           now, none, kAtOnce) &&
          calls < 1000)
        ++calls;
      EXPECT_LE(calls, LookAhead::kBatches / kAtOnce + 1) << stream;
    }
}

TEST_F(LongLookAheadTest, ManyUsesAreEnough) {
  const auto v = view(
      R"({"window": {"time": {"size": 560, "stride": 1}}, "batch": 1})");  // 140 or 141 chunks each
  LookAhead look_ahead(cache_, kMuchMemory);
  look_ahead.look(ahead(v, 0, 40), 0, none, kAll);
  EXPECT_EQ(uses(*v, 100), 30u) << "4096 / 141 batches, and the one that goes beyond";
  look_ahead.look(ahead(v, 0, 40), 0, none, kAll);
  EXPECT_EQ(uses(*v, 100), 30u);
}

TEST_F(LongLookAheadTest, FromManyThreads) {
  const auto v = view(R"({"window": {"time": 1}, "batch": 2})");
  LookAhead look_ahead(cache_, 2 * 96);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (std::int64_t b = 0; b < 300; b += 10) {
        look_ahead.look(ahead(v, b, std::min<std::int64_t>(b + 20, 300)),
                        static_cast<std::uint64_t>(b), none, kAll);
        if (t == 0) look_ahead.find_horizon();
        for (std::int64_t gone = b; gone < b + 10; ++gone)
          look_ahead.forget(BatchRequest{v, &kRaw, 0, gone}.key());
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (std::int64_t b = 0; b < 300; ++b) look_ahead.forget(BatchRequest{v, &kRaw, 0, b}.key());
  for (std::int64_t chunk = 0; chunk < 150; ++chunk) EXPECT_EQ(uses(*v, chunk), 0u) << chunk;
}

}  // namespace look_ahead_test
}  // namespace batchfs
