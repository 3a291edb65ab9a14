// Whole streams of batches on a real GPU, against the engine's batches. Without a GPU the tests
// skip.

#include "gpu/stream/batch_stream.h"

#include <sys/mman.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "gpu/stream/cuda_devices.h"
#include "gpu/stream/device_runner.h"
#include "tests/unit/engine/pipeline/raw_format.h"
#include "tests/unit/gpu/coded_data.h"

namespace batchfs::gpu {
namespace batch_stream_test {

const RawTestFormat kRaw;
constexpr std::uint64_t kMiB = 1 << 20;

class Streams : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_device(); !why.empty()) GTEST_SKIP() << why;
  }

  /// Reads a stream to its end and compares every batch. Returns their number.
  int compare(BatchStream& stream, std::int64_t rank = 0, std::int64_t world = 1) {
    int count = 0;
    const View& view = stream.view();
    for (;;) {
      const auto batch = stream.next();
      if (!batch) return count;
      const auto expected =
          engine_.open(BatchRequest{std::shared_ptr<const View>(std::shared_ptr<void>(), &view),
                                    &kRaw, batch->epoch, batch->batch, rank, world});
      for (std::size_t t = 0; t < batch->tensors.size(); ++t) {
        std::vector<std::byte> bytes(
            static_cast<std::size_t>(element_count(batch->tensors[t].shape)) *
            view.tensors()[t].type.itemsize);
        EXPECT_EQ(bytes.size(), expected->files[t].size());
        stream.read(batch->tensors[t], bytes);
        EXPECT_EQ(std::memcmp(bytes.data(), expected->files[t].data(), bytes.size()), 0)
            << "batch " << batch->place << " tensor " << t;
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
  EXPECT_EQ(stream.counters().chunks_on_gpu, 6 * 35u);
  EXPECT_EQ(stream.counters().chunks_on_cpu, 35u);
  EXPECT_EQ(stream.counters().chunks_refused, 0u);
}

TEST_F(Streams, ShuffledNormalisedWindowsOfManyEpochs) {
  const MemoryData data = coded_data(64, 4, 96, 128);
  const auto view = View::parse(
      data.dataset(),
      R"({"window": {"time": 1, "x": {"size": 48, "stride": 32, "wrap": true}, "y": {"size": 32, "stride": 16}},
      "batch": 32, "order": {"shuffle": "global", "seed": 3}, "dtype": "bfloat16", "formats": ["safetensors"], "epochs": 2,
      "normalize": {"method": "zscore", "statistics": {"v1": {"mean": 280.5, "std": 3.25}, "v2": {"mean": 280.5, "std": 3.25},
        "v3": {"mean": 280.5, "std": 3.25}, "v4": {"mean": 280.5, "std": 3.25}, "v5": {"mean": 280.5, "std": 3.25},
        "v6": {"mean": 280.5, "std": 3.25}, "v7": {"mean": 280.5, "std": 3.25}}}})",
      "v", "test");
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
  // Damaged for both the GPU's and the CPU's decoder.
  data.store->objects["v2/3.0.0"].resize(900);
  const auto view =
      View::parse(data.dataset(), R"({"window": {"time": 1}, "batch": 2})", "v", "test");
  BatchStream stream(view, engine_, {.memory = 220 * kMiB});
  int good = 0, bad = 0;
  for (std::int64_t b = 0; b < view->batches(); ++b) {
    try {
      const auto batch = stream.next();
      EXPECT_EQ(batch->why_on_cpu, "");
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
  EXPECT_NE(batch->why_on_cpu, "");
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

/// Like a reader's process: stored bytes in a shared mapping, programs as bytes of unknown origin.
TEST_F(Streams, AReaderRunsTheProgramsItself) {
  const MemoryData data = coded_data(41, 1, 40, 100);
  const auto view = View::parse(data.dataset(), kPairs, "v", "test");
  const AssemblyTables tables(*view);
  DeviceLayout layout = device_layout(*view, 220 * kMiB, 1);
  layout.sizes.constants = tables.constants().size();
  layout.sizes.staging = 3 * layout.part;
  void* staging = mmap(nullptr, layout.sizes.staging, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(staging, MAP_FAILED);
  {
    const PinnedMapping pinned(staging, layout.sizes.staging);
    const SlotMemory slots(0, layout.sizes.batch);
    DeviceRunner::Options options;
    options.sizes = layout.sizes;
    options.staging = static_cast<const std::byte*>(staging);
    options.batch = slots.data();
    check_conversions(tables.conversions(), layout.sizes.constants);
    DeviceRunner runner(options, tables.conversions(), tables.constants());
    Executor executor(2);
    ProgramCounters counters;
    ProgramSource source(
        view, tables,
        [&](std::uint64_t place) {
          const auto batch = static_cast<std::int64_t>(place);
          return batch < view->batches() ? std::optional(BatchNumber{0, batch}) : std::nullopt;
        },
        {layout.sizes, static_cast<std::byte*>(staging), layout.part}, executor, counters);
    for (std::int64_t b = 0; b < view->batches(); ++b) {
      std::vector<std::uint64_t> tensors = tensor_offsets(*view, view->shapes(b));
      tensors.pop_back();
      ASSERT_TRUE(source.begin(static_cast<std::uint64_t>(b), 0, tensors));
      for (;;) {
        const auto made = source.next();
        const Program program(std::vector<std::byte>(made->bytes().begin(), made->bytes().end()));
        check_program(program, layout.sizes, tables.conversions());
        runner.start(program);
        const auto ended =
            source.ended(program.header().number, runner.finish(program.header().number));
        if (!ended) continue;
        EXPECT_EQ(ended->why_failed, "");
        break;
      }
      const auto expected = engine_.open(BatchRequest{view, &kRaw, 0, b});
      for (std::size_t t = 0; t < tensors.size(); ++t) {
        std::vector<std::byte> bytes(expected->files[t].size());
        runner.download(tensors[t], bytes);
        EXPECT_EQ(std::memcmp(bytes.data(), expected->files[t].data(), bytes.size()), 0)
            << "batch " << b << " tensor " << t;
      }
    }
  }
  munmap(staging, layout.sizes.staging);
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

}  // namespace batch_stream_test
}  // namespace batchfs::gpu
