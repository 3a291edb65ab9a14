#include <future>
#include <random>

#include <gtest/gtest.h>

#include "engine/dataset/dataset.h"
#include "engine/pipeline/engine.h"
#include "tests/unit/engine/pipeline/fake_store.h"
#include "tests/unit/engine/pipeline/outcome.h"
#include "tests/unit/engine/pipeline/raw_format.h"
#include "tests/unit/eventually.h"

namespace batchfs {
namespace engine_waits_test {

using namespace std::chrono_literals;

const RawTestFormat kRaw;

/// The outcome's error; nullopt if it is a batch.
std::optional<ErrorCode> error_of(Outcome& outcome) {
  if (outcome.wait_for(20s) != std::future_status::ready) {
    ADD_FAILURE() << "nobody answered";
    return std::nullopt;
  }
  try {
    outcome.get();
    return std::nullopt;
  } catch (const Error& error) {
    return error.code();
  }
}

class EngineWaitsTest : public testing::TestWithParam<bool> {
 protected:
  EngineWaitsTest() { data_.store->asynchronous = GetParam(); }
  ~EngineWaitsTest() override { data_.store->open(); }
  const char* const samples_ = R"({"window": {"time": 1}, "batch": 4})";
  FakeData data_{10, 4, 6};
  Log log_;
};
INSTANTIATE_TEST_SUITE_P(Stores, EngineWaitsTest, testing::Bool(), [](const auto& parameter) {
  return parameter.param ? "remote" : "local";
});

TEST_P(EngineWaitsTest, WhoWaitsTooLongIsToldSoAndTheBatchCanBeHadLater) {
  Engine engine({.threads = 2, .memory = 64 << 20, .prefetch = false, .wait = 0.05}, log_);
  const auto view = data_.view(samples_);
  const auto array = view->variables()[0]->array;
  data_.store->close();
  Outcome batch = start(engine, {view, &kRaw, 0, 1});
  Outcome chunk = start_box(engine, array, Box{{8, 0}, {4, 6}}, "");
  std::promise<void> read;
  const auto out = std::make_shared<std::vector<std::byte>>(24 * 4);
  engine.arrays().read_elements(array, 48, 24, out->data(), out, [&read](std::exception_ptr error) {
    if (error)
      read.set_exception(error);
    else
      read.set_value();
  });
  const auto of_box = std::make_shared<std::vector<std::byte>>(24 * 4);
  std::promise<void> box;
  engine.arrays().read_box(array, Box{{8, 0}, {4, 6}}, nullptr, of_box->data(), {24, 4}, of_box,
                           [&box](std::exception_ptr error) {
                             if (error)
                               box.set_exception(error);
                             else
                               box.set_value();
                           });
  EXPECT_EQ(error_of(batch), ErrorCode::timed_out);
  EXPECT_EQ(error_of(chunk), ErrorCode::timed_out);
  for (std::promise<void>* promise : {&read, &box}) {
    try {
      promise->get_future().get();
      ADD_FAILURE() << "a read of nothing";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::timed_out);
    }
  }
  EXPECT_EQ(engine.state().readers_waiting, 0u);
  EXPECT_EQ(engine.counters().errors, 4u);
  EXPECT_NE(log_.text().find("--wait"), std::string::npos);
  data_.store->open();
  EXPECT_TRUE(eventually([&] {
    Outcome again = start(engine, {view, &kRaw, 0, 1});
    return !error_of(again);
  }));
}

TEST_P(EngineWaitsTest, AChunkFileHoldsTheHeaderAndTheValues) {
  Engine engine({.threads = 2, .memory = 64 << 20}, log_);
  Outcome outcome =
      start_box(engine, data_.dataset->variable("v").array, Box{{8, 0}, {4, 6}}, "head");
  const auto file = outcome.get();
  ASSERT_EQ(file->files.size(), 1u);
  const auto bytes = file->files[0].span();
  ASSERT_EQ(bytes.size(), 4u + 24 * 4);
  EXPECT_EQ(std::memcmp(bytes.data(), "head", 4), 0);
  for (int i = 0; i < 24; ++i) {
    std::int32_t value;
    std::memcpy(&value, bytes.data() + 4 + 4 * i, 4);
    EXPECT_EQ(value, 2000 + i);
  }
  EXPECT_GE(file->reservation.bytes(), bytes.size());
}

TEST_P(EngineWaitsTest, TheFirstReaderThatIsServedIsTold) {
  const auto view = data_.view(samples_);
  const auto array = view->variables()[0]->array;
  for (int what = 0; what < 3; ++what) {
    std::atomic<int> served{0};
    Engine engine({.threads = 2, .memory = 64 << 20, .served = [&served] { ++served; }}, log_);
    const auto read = [&] {
      if (what == 0) return engine.open(BatchRequest{view, &kRaw, 0, 1}), void();
      if (what == 1) return start_box(engine, array, Box{{8, 0}, {4, 6}}, "").get(), void();
      std::promise<void> done;
      const auto out = std::make_shared<std::vector<std::byte>>(24 * 4);
      engine.arrays().read_elements(array, 48, 24, out->data(), out,
                                    [&done](std::exception_ptr error) {
                                      if (error)
                                        done.set_exception(error);
                                      else
                                        done.set_value();
                                    });
      done.get_future().get();
    };
    data_.store->failing = what == 0 ? 1 : 2;
    EXPECT_THROW(read(), Error);
    EXPECT_EQ(served, 0);
    data_.store->failing = -1;
    for (int twice = 0; twice < 2; ++twice) read();
    EXPECT_EQ(served, 1);
    engine.stop();
  }
}

TEST_P(EngineWaitsTest, ACancelledReadEndsAtOnce) {
  Engine engine({.threads = 2, .memory = 64 << 20, .store = data_.store}, log_);
  data_.store->close();
  Engine::WaiterId id = 0;
  Outcome chunk =
      start_box(engine, data_.dataset->variable("v").array, Box{{0, 0}, {4, 6}}, "", &id);
  EXPECT_EQ(engine.state().readers_waiting, 1u);
  engine.cancel(id);
  EXPECT_EQ(error_of(chunk), ErrorCode::interrupted);
  EXPECT_EQ(engine.state().readers_waiting, 0u);
  data_.store->open();
  EXPECT_TRUE(eventually([&] { return engine.budget().used() == 0; })) << engine.budget().used();
}

TEST_P(EngineWaitsTest, WhatFitsOnlyBesideWhatReadersHoldWaitsForThem) {
  // Two batches of 96 bytes fit, three do not.
  Engine engine({.threads = 2, .memory = 250, .prefetch = false}, log_);
  const auto view = data_.view(samples_);
  const BatchRequest requests[] = {
      {view, &kRaw, 0, 0}, {view, &kRaw, 0, 1}, {view, &kRaw, 0, 2}, {view, &kRaw, 0, 3}};
  auto first = engine.open(requests[0]);
  const auto second = engine.open(requests[1]);
  Outcome third = start(engine, requests[2]);
  EXPECT_TRUE(eventually([&] { return engine.state().waiting_for_memory == 1; }));
  Outcome fourth = start(engine, requests[3]);
  EXPECT_TRUE(eventually([&] { return engine.state().waiting_for_memory == 2; }));
  EXPECT_EQ(third.wait_for(30ms), std::future_status::timeout);
  EXPECT_LE(engine.budget().used(), engine.budget().limit());
  first.reset();
  EXPECT_EQ(third.wait_for(20s), std::future_status::ready);  // first come, first served
  EXPECT_EQ(fourth.wait_for(30ms), std::future_status::timeout);
  third.get();
  EXPECT_EQ(error_of(fourth), std::nullopt);
  EXPECT_EQ(engine.state().waiting_for_memory, 0u);
}

TEST_P(EngineWaitsTest, WhoeverHoldsMemoryForEverMakesOthersFail) {
  Engine engine({.threads = 2, .memory = 100, .prefetch = false, .wait = 1}, log_);
  const auto view = data_.view(samples_);
  auto held = engine.open(BatchRequest{view, &kRaw, 0, 0});
  Outcome other = start(engine, {view, &kRaw, 0, 1});
  Outcome chunk = start_box(engine, view->variables()[0]->array, Box{{8, 0}, {4, 6}}, "");
  EXPECT_EQ(error_of(other), ErrorCode::no_memory);
  EXPECT_NE(error_of(chunk), std::nullopt);
  held.reset();
  EXPECT_NO_THROW(engine.open(BatchRequest{view, &kRaw, 0, 1}));
}

TEST_P(EngineWaitsTest, AStoreThatDoesNotAnswerIsNoWantOfMemory) {
  Engine engine({.threads = 2, .memory = 100, .prefetch = false, .wait = 1}, log_);
  const auto view = data_.view(samples_);
  data_.store->close();
  Outcome first = start(engine, {view, &kRaw, 0, 0});
  Outcome other = start(engine, {view, &kRaw, 0, 1});
  EXPECT_TRUE(eventually([&] { return engine.state().waiting_for_memory == 1; }));
  EXPECT_EQ(error_of(first), ErrorCode::timed_out);
  EXPECT_EQ(error_of(other), ErrorCode::timed_out) << "nobody holds a batch that could be closed";
  data_.store->open();
  EXPECT_NO_THROW(engine.open(BatchRequest{view, &kRaw, 0, 1}));
}

TEST_P(EngineWaitsTest, WhoLeavesTheQueueForMemoryLeavesNothing) {
  Engine engine({.threads = 2, .memory = 100, .prefetch = false}, log_);
  const auto view = data_.view(samples_);
  auto held = engine.open(BatchRequest{view, &kRaw, 0, 0});
  Engine::WaiterId ids[2];
  Outcome batch = start(engine, {view, &kRaw, 0, 1}, &ids[0]);
  Outcome chunk = start_box(engine, view->variables()[0]->array, Box{{8, 0}, {4, 6}}, "", &ids[1]);
  EXPECT_TRUE(eventually([&] { return engine.state().waiting_for_memory == 2; }));
  for (const Engine::WaiterId id : ids) engine.cancel(id);
  EXPECT_EQ(error_of(batch), ErrorCode::interrupted);
  EXPECT_EQ(error_of(chunk), ErrorCode::interrupted);
  EXPECT_TRUE(eventually([&] { return engine.state().waiting_for_memory == 0; }));
  held.reset();
  EXPECT_NO_THROW(engine.open(BatchRequest{view, &kRaw, 0, 2}));
  EXPECT_TRUE(eventually([&] { return engine.budget().used() <= engine.budget().limit(); }));
}

TEST_P(EngineWaitsTest, StoppingAnswersTheQueue) {
  const auto view = data_.view(samples_);
  Engine engine({.threads = 2, .memory = 100, .prefetch = false}, log_);
  auto held = engine.open(BatchRequest{view, &kRaw, 0, 0});
  Outcome other = start(engine, {view, &kRaw, 0, 1});
  EXPECT_TRUE(eventually([&] { return engine.state().waiting_for_memory == 1; }));
  engine.stop();
  EXPECT_EQ(error_of(other), ErrorCode::interrupted);
}

TEST_P(EngineWaitsTest, AStoreThatNeverAnswersKeepsNobody) {
  if (GetParam()) GTEST_SKIP() << "the reads of remote stores are ended";
  const auto view = data_.view(samples_);
  Engine engine({.threads = 2, .memory = 64 << 20, .prefetch = false}, log_);
  data_.store->close();
  Outcome batch = start(engine, {view, &kRaw, 0, 0});
  EXPECT_TRUE(eventually([&] { return data_.store->asked == 1; }));
  EXPECT_FALSE(engine.stop(0.05));
  EXPECT_EQ(error_of(batch), ErrorCode::interrupted);
  data_.store->open();
  EXPECT_TRUE(engine.stop(20));
}

TEST_P(EngineWaitsTest, WhatIsKeptForReadersIsGivenBackWhenNoneComes) {
  Engine engine({.threads = 2, .memory = 64 << 20, .idle = 0.2}, log_);
  const auto view = data_.view(samples_);
  for (std::int64_t b = 0; b < 3; ++b) engine.open(BatchRequest{view, &kRaw, 0, b});
  EXPECT_GT(engine.budget().used(), 0u);
  EXPECT_TRUE(eventually([&] { return engine.budget().used() == 0; })) << engine.budget().used();
  EXPECT_EQ(engine.state().cache_bytes, 0u);
  EXPECT_NO_THROW(engine.open(BatchRequest{view, &kRaw, 0, 3}));
}

TEST_P(EngineWaitsTest, ManyReadersHoldTheBudget) {
  constexpr int kSteps = 4, kWidth = 4096;
  constexpr std::uint64_t kChunk = kSteps * kWidth * 4;  // 64 KB
  FakeData big(64, kSteps, kWidth, kWholeChunks);
  big.store->asynchronous = GetParam();
  const std::uint64_t limit =
      5 * kChunk;  // tiny: a reader's batch takes two chunks' memory and touches four
  Engine engine({.threads = 3, .memory = limit}, log_);
  std::vector<std::shared_ptr<const View>> views;
  for (const char* order : {"none", "global", "block"})
    views.push_back(big.view(R"({"window": {"time": 1}, "batch": 8, "order": {"shuffle": ")" +
                             std::string(order) + "\"}}"));
  std::atomic<std::uint64_t> most{0};
  std::atomic<bool> done{false};
  std::thread watch([&] {
    while (!done) {
      most = std::max(most.load(), engine.budget().used());
      std::this_thread::yield();
    }
  });
  std::vector<std::thread> readers;
  for (unsigned t = 0; t < 16; ++t)
    readers.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 12; ++i) {
        const auto& view = views[random() % views.size()];
        const auto b = static_cast<std::int64_t>(random() % static_cast<unsigned>(view->batches()));
        const auto batch = engine.open(BatchRequest{view, &kRaw, 0, b});
        const std::vector<std::int64_t> samples = view->batch_samples(0, b);
        for (std::size_t r = 0; r < samples.size(); ++r) {
          std::int32_t value;
          std::memcpy(&value, batch->files[0].data() + r * kWidth * 4, 4);
          ASSERT_EQ(value, 1000 * static_cast<int>(samples[r] / kSteps) +
                               static_cast<int>(samples[r] % kSteps) * kWidth);
        }
      }
    });
  for (std::thread& reader : readers) reader.join();
  done = true;
  watch.join();
  // Work that has begun must end: a stored chunk, one that is being decoded, and chunks being
  // handed over.
  EXPECT_LE(most, limit + 6 * kChunk);
  engine.stop();
  EXPECT_EQ(engine.state().readers_waiting, 0u);
  EXPECT_LE(engine.budget().used(), limit);
}

}  // namespace engine_waits_test
}  // namespace batchfs
