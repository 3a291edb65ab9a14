#include "engine/pipeline/engine.h"

#include <future>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/dataset/dataset.h"
#include "tests/unit/engine/pipeline/fake_store.h"
#include "tests/unit/engine/pipeline/outcome.h"
#include "tests/unit/engine/pipeline/raw_format.h"
#include "tests/unit/eventually.h"

namespace batchfs {
namespace engine_test {

using namespace std::chrono_literals;

const RawTestFormat kRaw;

std::vector<std::int32_t> values_of(const Batch& batch, std::size_t file = 0) {
  std::vector<std::int32_t> values(batch.files[file].size() / 4);
  if (!values.empty())
    std::memcpy(values.data(), batch.files[file].data(), batch.files[file].size());
  return values;
}

/// Checks a batch of FakeData(…, steps, width): sample `time` holds row `time`.
void expect_rows(const Batch& batch, const std::vector<std::int64_t>& times, int steps, int width) {
  const auto values = values_of(batch);
  ASSERT_EQ(values.size(), times.size() * static_cast<std::size_t>(width));
  for (std::size_t r = 0; r < times.size(); ++r)
    for (int x = 0; x < width; ++x)
      ASSERT_EQ(values[r * static_cast<std::size_t>(width) + static_cast<std::size_t>(x)],
                1000 * static_cast<int>(times[r] / steps) +
                    static_cast<int>(times[r] % steps) * width + x)
          << r << " " << x;
}

class EngineTest : public testing::TestWithParam<bool> {
 protected:
  EngineTest() { data_.store->asynchronous = GetParam(); }
  FakeData data_{10, 4, 6};
  Log log_;
};
INSTANTIATE_TEST_SUITE_P(Stores, EngineTest, testing::Bool(), [](const auto& parameter) {
  return parameter.param ? "remote" : "local";
});

TEST_P(EngineTest, ForgetsWhatCameFromAStore) {
  Engine engine({.threads = 2, .memory = 64 << 20}, log_);
  const FakeData other{10, 4, 6};
  const auto kept = other.view(R"({"window": {"time": 1}, "batch": 3})");
  auto view = data_.view(R"({"window": {"time": 1}, "batch": 3})");
  const std::weak_ptr<const View> watched = view;
  for (std::int64_t b = 0; b < view->batches(); ++b) engine.open(BatchRequest{view, &kRaw, 0, b});
  engine.open(BatchRequest{kept, &kRaw, 0, 0});
  view = nullptr;
  EXPECT_TRUE(eventually([&] {  // chunks in flight are cached when they are done
    engine.forget(*data_.store);
    return watched.expired();
  }));
  ASSERT_EQ(engine.state().streams.size(), 1u);
  expect_rows(*engine.open(BatchRequest{kept, &kRaw, 0, 1}), {3, 4, 5}, 4, 6);
}

TEST_P(EngineTest, HoldsMemoryForItsCaller) {
  Engine engine({.memory = 64 << 20}, log_);
  {
    const auto held = engine.hold(1 << 20);
    EXPECT_EQ(engine.budget().used(), 1u << 20);
    EXPECT_EQ(engine.hold(UINT64_MAX).bytes(), engine.budget().limit());
  }
  EXPECT_EQ(engine.budget().used(), 0u);
}

TEST_P(EngineTest, GivesEveryBatchItsValues) {
  Engine engine({.threads = 3, .memory = 64 << 20}, log_);
  const auto view = data_.view(
      R"({"window": {"time": 1}, "batch": 3, "order": {"shuffle": "global", "seed": 4}})");
  for (std::int64_t epoch : {0, 1})
    for (std::int64_t b = 0; b < view->batches(); ++b) {
      const auto batch = engine.open(BatchRequest{view, &kRaw, epoch, b});
      expect_rows(*batch, view->batch_samples(epoch, b), 4, 6);
    }
}

TEST_P(EngineTest, DecodesEachChunkOnceForAllBatches) {
  FakeData data(10, 4, 6, kWholeChunks);
  data.store->asynchronous = GetParam();
  Engine engine({.threads = 2, .memory = 64 << 20}, log_);
  const auto view = data.view(R"({"window": {"time": {"size": 2, "stride": 1}}, "batch": 3})");
  for (std::int64_t b = 0; b < view->batches(); ++b) engine.open(BatchRequest{view, &kRaw, 0, b});
  EXPECT_EQ(engine.counters().batches_assembled.load(),
            static_cast<std::uint64_t>(view->batches()));
  EXPECT_EQ(engine.counters().chunks_decoded.load(), 10u);
  EXPECT_EQ(engine.counters().bytes_decoded.load(), 10u * 4 * 6 * 4);
  EXPECT_EQ(data.store->reads.load(), 10);
}

// ERA5 is stored with one step per chunk: a batch takes all of its chunks. Chunks that fit into
// memory are nevertheless decoded once for all epochs and offsets.
TEST_P(EngineTest, DecodesOnceWhatFitsIntoMemoryAlsoWhereBatchesTakeWholeChunks) {
  FakeData data(40, 1, 6, kWholeChunks);
  data.store->asynchronous = GetParam();
  for (const std::string order : {"none", "global"}) {
    Engine engine({.threads = 2, .memory = 64 << 20}, log_);
    const auto view = data.view(
        R"({"window": {"time": 1}, "tensors": {"x": {"variables": ["v"], "offsets": {"time": [-1, 0, 1]}},
            "y": {"variables": ["v"], "offsets": {"time": [4]}}}, "batch": 3, "epochs": 3,
            "order": {"shuffle": ")" +
        order + "\"}}");
    for (std::int64_t epoch = 0; epoch < 3; ++epoch)
      for (std::int64_t b = 0; b < view->batches(); ++b)
        engine.open(BatchRequest{view, &kRaw, epoch, b});
    EXPECT_EQ(engine.counters().chunks_decoded.load(), 40u) << order;
  }
}

// Three quarters of the memory besides batches hold chunks. With half, a `--memory` of twice the
// data was too small, because a part of it is kept for freed buffers: W1 decoded 1.4 times its
// chunks.
TEST_P(EngineTest, DecodesOnceWhatTakesMostOfTheMemory) {
  FakeData data(40, 1, 6, kWholeChunks);
  data.store->asynchronous = GetParam();
  const std::uint64_t chunks = 40 * 6 * 4;
  Engine engine({.threads = 2, .memory = chunks * 10 / 7, .prefetch = false}, log_);
  const auto view = data.view(
      R"({"window": {"time": 1}, "batch": 3, "epochs": 3, "order": {"shuffle": "global"}})");
  for (std::int64_t epoch = 0; epoch < 3; ++epoch)
    for (std::int64_t b = 0; b < view->batches(); ++b)
      engine.open(BatchRequest{view, &kRaw, epoch, b});
  EXPECT_EQ(engine.counters().chunks_decoded.load(), 40u);
}

// Windows that do not overlap, as samples of one step, share chunks of several steps.
TEST_P(EngineTest, DecodesOnceWhatSeveralBatchesOfAShuffledEpochUse) {
  for (const std::string order : {"global", "block"}) {
    FakeData data(10, 4, 6, kWholeChunks);
    data.store->asynchronous = GetParam();
    Engine engine({.threads = 2, .memory = 64 << 20, .prefetch = false}, log_);
    const auto view =
        data.view(R"({"window": {"time": 1}, "batch": 3, "order": {"shuffle": ")" + order + "\"}}");
    for (std::int64_t b = 0; b < view->batches(); ++b) engine.open(BatchRequest{view, &kRaw, 0, b});
    EXPECT_EQ(engine.counters().chunks_decoded.load(), 10u) << order;
  }
}

// Chunks that are used again do so soon: they are decoded straight into batches, not cached and
// copied.
TEST_P(EngineTest, KeepsFewChunksOfAnEpochInOrder) {
  FakeData data(40, 1, 6, kWholeChunks);
  data.store->asynchronous = GetParam();
  Engine engine({.threads = 2, .memory = 64 << 20}, log_);
  const auto view = data.view(
      R"({"window": {"time": 1}, "tensors": {"x": {"variables": ["v"]},
          "y": {"variables": ["v"], "offsets": {"time": [1]}}}, "batch": 4})");
  std::vector<std::shared_ptr<const Batch>> held;
  for (std::int64_t b = 0; b < view->batches(); ++b)
    held.push_back(engine.open(BatchRequest{view, &kRaw, 0, b}));
  EXPECT_EQ(engine.counters().chunks_decoded.load(), 40u);
  EXPECT_LE(engine.state().cache_bytes, 10u * 6 * 4);  // at most one between two batches
}

TEST_P(EngineTest, ReadsOfPlainChunksOnlyWhatBatchesNeed) {
  Engine engine({.threads = 2, .memory = 64 << 20}, log_);
  const auto view = data_.view(R"({"window": {"time": {"size": 2, "stride": 1}}, "batch": 3})");
  for (std::int64_t b = 0; b < view->batches(); ++b) engine.open(BatchRequest{view, &kRaw, 0, b});
  EXPECT_EQ(engine.counters().batches_assembled.load(),
            static_cast<std::uint64_t>(view->batches()));
  // Every row at least once. Each of the 13 batches needs 4 rows, which may be read again for it:
  // reading a part of a plain chunk costs no decoding.
  EXPECT_GE(engine.counters().bytes_decoded.load(), 40u * 6 * 4);
  EXPECT_LE(engine.counters().bytes_decoded.load(), 13u * 4 * 6 * 4);
}

TEST_P(EngineTest, SeveralReadersOfOneBatchCostOneAssembly) {
  Engine engine({.threads = 2, .memory = 64 << 20, .prefetch = false}, log_);
  const auto view = data_.view(R"({"window": {"time": 1}, "batch": 4})");
  data_.store->close();
  std::vector<Outcome> readers;
  for (int i = 0; i < 8; ++i) readers.push_back(start(engine, {view, &kRaw, 0, 2}));
  data_.store->open();
  std::shared_ptr<const Batch> first = readers.front().get();
  for (std::size_t i = 1; i < readers.size(); ++i) EXPECT_EQ(readers[i].get(), first);
  EXPECT_EQ(engine.counters().batches_assembled.load(), 1u);
  EXPECT_EQ(data_.store->reads.load(), 1);
}

TEST_P(EngineTest, ABatchCountsAsOpenedBeforeItsReaderHasIt) {
  Engine engine({.threads = 2, .memory = 64 << 20, .prefetch = false}, log_);
  const auto view = data_.view(R"({"window": {"time": 1}, "batch": 1, "epochs": 50})");
  std::uint64_t opened = 0;
  for (std::int64_t epoch = 0; epoch < 50; ++epoch)
    for (std::int64_t b = 0; b < view->batches(); ++b) {
      std::promise<std::uint64_t> counted;
      engine.open(BatchRequest{view, &kRaw, epoch, b},
                  [&](std::shared_ptr<const Batch>, std::exception_ptr) {
                    counted.set_value(engine.counters().batches_opened);
                  });
      ASSERT_EQ(counted.get_future().get(), ++opened);
    }
}

TEST_P(EngineTest, PrefetchesAcrossTheEndOfAnEpoch) {
  Engine engine({.threads = 2, .memory = 64 << 20}, log_);
  const auto view = data_.view(R"({"window": {"time": 1}, "batch": 40, "epochs": 2})");
  engine.open(BatchRequest{view, &kRaw, 0, 0});
  EXPECT_TRUE(eventually([&] { return engine.counters().batches_assembled >= 2; }));
  const std::uint64_t waits = engine.counters().reader_waits;
  engine.open(BatchRequest{view, &kRaw, 1, 0});
  EXPECT_EQ(engine.counters().reader_waits.load(), waits);
}

TEST_P(EngineTest, AFailedChunkFailsItsBatchesOnlyAndIsTriedAgain) {
  Engine engine({.threads = 2, .memory = 64 << 20}, log_);
  const auto view = data_.view(R"({"window": {"time": 1}, "batch": 4})");
  data_.store->failing = 3;
  EXPECT_THROW(engine.open(BatchRequest{view, &kRaw, 0, 3}), Error);
  expect_rows(*engine.open(BatchRequest{view, &kRaw, 0, 4}), view->batch_samples(0, 4), 4, 6);
  EXPECT_THAT(log_.text(), testing::HasSubstr("v/3.0"));
  data_.store->failing = -1;
  expect_rows(*engine.open(BatchRequest{view, &kRaw, 0, 3}), view->batch_samples(0, 3), 4, 6);
}

TEST_P(EngineTest, AMissingChunkIsFillValue) {
  Engine engine({.threads = 2, .memory = 64 << 20}, log_);
  const auto view = data_.view(R"({"window": {"time": 1}, "batch": 4})");
  data_.store->missing = 5;
  EXPECT_THAT(values_of(*engine.open(BatchRequest{view, &kRaw, 0, 5})), testing::Each(0));
}

TEST_P(EngineTest, ACancelledWaiterLeavesAndTheOthersAreServed) {
  Engine engine({.threads = 2, .memory = 64 << 20, .prefetch = false}, log_);
  const auto view = data_.view(R"({"window": {"time": 1}, "batch": 4})");
  data_.store->close();
  Engine::WaiterId id = 0;
  auto leaving = start(engine, {view, &kRaw, 0, 1}, &id);
  auto staying = start(engine, {view, &kRaw, 0, 1});
  auto only = start(engine, {view, &kRaw, 0, 2}, nullptr);
  engine.cancel(id);
  EXPECT_THROW(leaving.get(), Error);
  engine.cancel(id);  // a second time does nothing
  data_.store->open();
  expect_rows(*staying.get(), view->batch_samples(0, 1), 4, 6);
  expect_rows(*only.get(), view->batch_samples(0, 2), 4, 6);
}

TEST_P(EngineTest, ABatchWhoseOnlyReaderLeftCanBeOpenedAgain) {
  Engine engine({.threads = 2, .memory = 64 << 20, .prefetch = false}, log_);
  const auto view = data_.view(R"({"window": {"time": 1}, "batch": 4})");
  for (int batch = 0; batch < 10; ++batch) {  // each of another chunk, which is not in a cache
    data_.store->close();
    Engine::WaiterId id = 0;
    auto leaving = start(engine, {view, &kRaw, 0, batch}, &id);
    engine.cancel(id);
    EXPECT_THROW(leaving.get(), Error);
    auto again = start(engine, {view, &kRaw, 0, batch});
    data_.store->open();
    expect_rows(*again.get(), view->batch_samples(0, batch), 4, 6);
  }
}

TEST_P(EngineTest, StoppingAnswersEveryWaiter) {
  const auto view = data_.view(R"({"window": {"time": 1}, "batch": 4})");
  std::vector<Outcome> waiting;
  {
    Engine engine({.threads = 1, .memory = 64 << 20}, log_);
    data_.store->close();
    for (int b = 0; b < 8; ++b) waiting.push_back(start(engine, {view, &kRaw, 0, b}));
    std::thread opener([&] {
      std::this_thread::sleep_for(20ms);
      data_.store->open();
    });
    opener.join();
  }
  for (int b = 0; b < 8; ++b) {
    Outcome& future = waiting[static_cast<std::size_t>(b)];
    ASSERT_EQ(future.wait_for(10s), std::future_status::ready);
    try {
      expect_rows(*future.get(), view->batch_samples(0, b), 4, 6);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::interrupted);
    }
  }
}

TEST_P(EngineTest, StoppingEndsTheReadsOfItsStore) {
  const auto view = data_.view(R"({"window": {"time": 1}, "batch": 4})");
  Engine engine({.threads = 2, .memory = 64 << 20, .store = data_.store}, log_);
  data_.store->close();  // for good
  std::vector<Outcome> waiting;
  for (int b = 0; b < 8; ++b) waiting.push_back(start(engine, {view, &kRaw, 0, b}));
  engine.stop();
  waiting.push_back(start(engine, {view, &kRaw, 0, 8}));
  for (auto& future : waiting) {
    ASSERT_EQ(future.wait_for(0s), std::future_status::ready);
    try {
      future.get();
      ADD_FAILURE() << "a batch of nothing";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::interrupted);
    }
  }
  std::vector<std::byte> out(24 * 4);
  EXPECT_THROW(engine.arrays().read_box(view->variables()[0]->array, Box{{0, 0}, {4, 6}}, nullptr,
                                        out.data(), {24, 4}),
               Error);
  EXPECT_EQ(engine.budget().used(), 0u);
  EXPECT_EQ(engine.counters().errors, 0u);
  EXPECT_EQ(log_.text().find("failed"), std::string::npos) << log_.text();
}

TEST_P(EngineTest, ABatchLargerThanTheBudgetIsRefused) {
  Engine engine({.threads = 2, .memory = 1000}, log_);
  const auto view = data_.view(
      R"({"window": {"time": 1}, "batch": 40, "variables": ["v"], "select": {"x": {"from": "#0"}}})");
  EXPECT_NO_THROW(engine.open(BatchRequest{view, &kRaw, 0, 0}));  // 40 * 6 * 4 = 960 bytes
  const auto large = data_.view(R"({"window": {"time": {"size": 2, "stride": 1}}, "batch": 39})");
  try {
    engine.open(BatchRequest{large, &kRaw, 0, 0});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::no_memory);
  }
}

TEST_P(EngineTest, HoldsItsBudgetAndGivesAllBack) {
  FakeData big(64, 4, 1024);  // chunks of 16 KB
  big.store->asynchronous = GetParam();
  const std::uint64_t limit = 8 * 16 << 10;
  Engine engine({.threads = 3, .memory = limit}, log_);
  const auto view =
      big.view(R"({"window": {"time": 1}, "batch": 4, "order": {"shuffle": "global"}})");
  std::uint64_t most = 0;
  for (std::int64_t b = 0; b < view->batches(); ++b) {
    const auto batch = engine.open(BatchRequest{view, &kRaw, 0, b});
    expect_rows(*batch, view->batch_samples(0, b), 4, 1024);
    most = std::max(most, engine.budget().used());
  }
  // A batch that a reader waits for may exceed the limit: one batch and a chunk per thread.
  EXPECT_LE(most, limit + (16 << 10) * 5);
}

TEST_P(EngineTest, AChunkThatCannotBeKeptServesAllBatchesThatAreComing) {
  constexpr int kChunks = 40, kSteps = 32, kWidth = 256;
  FakeData big(kChunks, kSteps, kWidth, kWholeChunks);  // chunks of 32 KB
  big.store->asynchronous = GetParam();
  // Room for 10 chunks of 40, or for 80 batches of 4 samples of 1 KB.
  Engine engine({.threads = 2, .memory = 10 * kSteps * kWidth * 4}, log_);
  const auto view =
      big.view(R"({"window": {"time": 1}, "batch": 4, "order": {"shuffle": "global"}})");
  for (std::int64_t b = 0; b < view->batches(); ++b) {
    expect_rows(*engine.open(BatchRequest{view, &kRaw, 0, b}), view->batch_samples(0, b), kSteps,
                kWidth);
    // A reader that computes: one that requests batches faster than they can be planned leaves
    // nothing to join.
    for (int i = 0;
         i < 50 && engine.counters().batches_assembled < static_cast<std::uint64_t>(b) + 3; ++i)
      std::this_thread::sleep_for(1ms);
  }
  // With only a cache, 3 of 4 samples would cost a chunk.
  EXPECT_LT(engine.counters().chunks_decoded.load(), kChunks * kSteps / 2u);
}

TEST_P(EngineTest, ForgetsWhatWasPrefetchedForAReaderThatWentElsewhere) {
  FakeData data(10, 100, 16);  // samples of 64 bytes
  data.store->asynchronous = GetParam();
  Engine engine({.threads = 2, .memory = 64 << 20}, log_);
  const auto large = data.view(R"({"window": {"time": 1}, "batch": 300})");
  engine.open(BatchRequest{large, &kRaw, 0, 0});
  EXPECT_TRUE(eventually([&] { return engine.counters().batches_assembled >= 3; }));
  const auto held = [&] { return engine.budget().used() - engine.state().cache_bytes; };
  EXPECT_GE(held(), 3 * 300 * 64u);
  const auto small = data.view(R"({"window": {"time": 1}, "batch": 1})");
  // On a busy machine some begin late, up to 96 batches ahead; they are dropped 256 batches after
  // they were due.
  for (std::int64_t b = 0; b < 900; ++b) engine.open(BatchRequest{small, &kRaw, 0, b});
  EXPECT_TRUE(eventually([&] { return held() < 300 * 64; })) << held();
}

TEST_P(EngineTest, ManyReadersOfManyViewsGetTheRightBytes) {
  Engine engine({.threads = 4, .memory = 256 << 10}, log_);
  std::vector<std::shared_ptr<const View>> views;
  views.push_back(
      data_.view(R"({"window": {"time": 1}, "batch": 3, "order": {"shuffle": "global"}})"));
  views.push_back(data_.view(R"({"window": {"time": 1}, "batch": 4})"));
  views.push_back(
      data_.view(R"({"window": {"time": 1}, "batch": 5, "order": {"shuffle": "block"}})"));
  std::vector<std::thread> readers;
  for (unsigned t = 0; t < 6; ++t)
    readers.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 150; ++i) {
        const auto& view = views[random() % views.size()];
        const std::int64_t epoch = static_cast<std::int64_t>(random() % 3);
        const std::int64_t world = 1 + static_cast<std::int64_t>(random() % 3);
        const std::int64_t rank = static_cast<std::int64_t>(random()) % world;
        const std::int64_t b =
            static_cast<std::int64_t>(random()) % view->rank_batches(rank, world);
        const BatchRequest request{view, &kRaw, epoch, b, rank, world};
        Engine::WaiterId id = 0;
        auto future = start(engine, request, &id);
        const bool cancelled = random() % 8 == 0;
        if (cancelled) engine.cancel(id);
        try {
          expect_rows(*future.get(), view->batch_samples(epoch, request.global_batch()), 4, 6);
        } catch (const Error& error) {
          EXPECT_TRUE(cancelled) << error.what();
          EXPECT_EQ(error.code(), ErrorCode::interrupted) << error.what();
        }
      }
    });
  for (std::thread& reader : readers) reader.join();
}

TEST_P(EngineTest, ReadsRunsOfElementsAndBoxes) {
  Engine engine({.threads = 2, .memory = 64 << 20}, log_);
  const auto array = data_.dataset->variable("v").array;
  std::vector<std::int32_t> all(240), part;
  engine.arrays().read_box(array, whole_box(array->shape()), nullptr,
                           reinterpret_cast<std::byte*>(all.data()), c_strides(array->shape(), 4));
  for (int i = 0; i < 240; ++i)
    EXPECT_EQ(all[static_cast<std::size_t>(i)], 1000 * (i / 24) + i % 24);
  for (int first : {0, 1, 23, 24, 100})
    for (int count : {1, 5, 24, 50, 140}) {
      part.assign(static_cast<std::size_t>(count), -1);
      std::promise<void> done;
      engine.arrays().read_elements(array, first, count, reinterpret_cast<std::byte*>(part.data()),
                                    nullptr, [&](std::exception_ptr error) {
                                      EXPECT_FALSE(error);
                                      done.set_value();
                                    });
      done.get_future().get();
      EXPECT_THAT(part,
                  testing::ElementsAreArray(all.data() + first, static_cast<std::size_t>(count)));
    }
}

}  // namespace engine_test
}  // namespace batchfs
