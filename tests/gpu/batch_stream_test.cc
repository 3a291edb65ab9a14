// Whole streams of batches on a real GPU, against the engine's batches. Without a GPU the tests skip.

#include "gpu/batch_stream.h"

#include <unistd.h>

#include <gtest/gtest.h>

#include "gpu/device_decoder.h"
#include "tests/unit/engine/pipeline/raw_format.h"
#include "tests/unit/gpu/coded_data.h"

namespace batchfs::gpu {
namespace {

const RawTestFormat kRaw;
constexpr std::uint64_t kMiB = 1 << 20;

class Streams : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_device(); !why.empty()) GTEST_SKIP() << why;
  }

  /// Reads a stream to its end and compares every batch; how many there were.
  int compare(BatchStream& stream, std::int64_t rank = 0, std::int64_t world = 1) {
    int count = 0;
    const View& view = stream.view();
    for (;;) {
      const auto batch = stream.next();
      if (!batch) return count;
      const auto expected = engine_.open(BatchRequest{std::shared_ptr<const View>(std::shared_ptr<void>(), &view), &kRaw, batch->epoch, batch->batch, rank, world});
      for (std::size_t t = 0; t < batch->tensors.size(); ++t) {
        std::vector<std::byte> bytes(static_cast<std::size_t>(element_count(batch->tensors[t].shape)) * view.tensors()[t].type.itemsize);
        EXPECT_EQ(bytes.size(), expected->files[t].size());
        stream.read(batch->tensors[t], bytes);
        EXPECT_EQ(std::memcmp(bytes.data(), expected->files[t].data(), bytes.size()), 0) << "batch " << batch->place << " tensor " << t;
      }
      stream.release(*batch);
      ++count;
    }
  }

  Log log_;
  Engine engine_{{.threads = 4, .memory = 256 << 20}, log_};
};

TEST_F(Streams, BatchesAreTheEngines) {
  const MemoryData data = coded_data(41, 1, 40, 100);
  const auto view = View::parse(data.dataset(), kPairs, "v", "test");
  BatchStream stream(view, engine_, {.memory = 220 * kMiB});
  EXPECT_EQ(compare(stream), view->batches());
  EXPECT_EQ(stream.counters().batches_on_cpu, 0u);
  EXPECT_EQ(stream.counters().chunks_on_gpu, 5 * 35u);
  EXPECT_EQ(stream.counters().chunks_on_cpu, 35u);
  EXPECT_EQ(stream.counters().chunks_refused, 0u);
}

TEST_F(Streams, ShuffledNormalisedWindowsOfManyEpochs) {
  const MemoryData data = coded_data(64, 4, 96, 128);
  const auto view = View::parse(data.dataset(), R"({"window": {"time": 1, "x": {"size": 48, "stride": 32, "wrap": true}, "y": {"size": 32, "stride": 16}},
      "batch": 32, "order": {"shuffle": "global", "seed": 3}, "dtype": "bfloat16", "formats": ["safetensors"], "epochs": 2,
      "normalize": {"method": "zscore", "statistics": {"v1": {"mean": 280.5, "std": 3.25}, "v2": {"mean": 280.5, "std": 3.25},
        "v3": {"mean": 280.5, "std": 3.25}, "v4": {"mean": 280.5, "std": 3.25}, "v5": {"mean": 280.5, "std": 3.25},
        "v6": {"mean": 280.5, "std": 3.25}}}})", "v", "test");
  BatchStream stream(view, engine_, {.memory = 220 * kMiB});
  EXPECT_EQ(compare(stream), 2 * view->batches());
  EXPECT_EQ(stream.counters().batches_on_cpu, 0u);
}

TEST_F(Streams, LargeChunksAndRanks) {
  const MemoryData data = coded_data(24, 1, 640, 1280);
  const auto view = View::parse(data.dataset(), kPairs, "v", "test");
  for (const std::int64_t rank : {0, 1}) {
    BatchStream stream(view, engine_, {.memory = 3000 * kMiB, .rank = rank, .world = 2});
    EXPECT_EQ(compare(stream, rank, 2), view->rank_batches(rank, 2));
    EXPECT_EQ(stream.counters().batches_on_cpu, 0u);
  }
}

TEST_F(Streams, WhatTheGpuCannotDoComesFromTheEngine) {
  MemoryData data = coded_data(16, 1, 40, 100);
  // Damaged for the GPU and for the CPU.
  data.store->objects["v2/3.0.0"].resize(900);
  const auto view = View::parse(data.dataset(), R"({"window": {"time": 1}, "batch": 2})", "v", "test");
  BatchStream stream(view, engine_, {.memory = 220 * kMiB});
  int good = 0, bad = 0;
  for (std::int64_t b = 0; b < view->batches(); ++b) {
    try {
      const auto batch = stream.next();
      EXPECT_FALSE(batch->from_cpu);
      stream.release(*batch);
      ++good;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("v2/3.0.0"), std::string::npos) << error.what();
      ++bad;
    }
  }
  EXPECT_EQ(bad, 1);
  EXPECT_EQ(good, view->batches() - 1);

  BatchStream by_engine(view, engine_, {.memory = 220 * kMiB, .by_engine = true});
  const auto batch = by_engine.next();
  EXPECT_TRUE(batch->from_cpu);
}

TEST_F(Streams, AStreamEndsAtAnyMoment) {
  const MemoryData data = coded_data(41, 1, 40, 100);
  const auto view = View::parse(data.dataset(), kPairs, "v", "test");
  for (int held = 0; held < 5; ++held) {
    BatchStream stream(view, engine_, {.memory = 220 * kMiB});
    for (int i = 0; i < held; ++i) {
      const auto batch = stream.next();
      if (i % 2 == 0) stream.release(*batch);
    }
  }
}

TEST_F(Streams, SlotsAreHandedOnAsADescriptor) {
  SlotMemory memory(0, 5 * kMiB);
  EXPECT_GE(memory.size(), 5 * kMiB);
  const int fd = memory.export_fd();
  ASSERT_GE(fd, 0);
  const SlotMemory mapped = SlotMemory::import_fd(0, fd, memory.size());
  close(fd);
  EXPECT_NE(mapped.data(), nullptr);
  EXPECT_NE(mapped.data(), memory.data());
}

}  // namespace
}  // namespace batchfs::gpu
