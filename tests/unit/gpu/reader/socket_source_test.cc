// A reader that decodes for itself, from end to end: the server's programs, run on the host by the
// kernels' own code, make the engine's batches, and none comes from the host.

#include "gpu/reader/socket_source.h"

#include <deque>
#include <numeric>

#include <gmock/gmock.h>

#include "gpu/handoff/packed_format.h"
#include "gpu/handoff/reader_delivery.h"
#include "tests/unit/gpu/coded_data.h"
#include "tests/unit/gpu/handoff/client.h"
#include "tests/unit/gpu/handoff/emulated_decoder.h"
#include "tests/unit/gpu/handoff/fake_device.h"

namespace batchfs::reader {
namespace socket_source_test {

using namespace handoff;
using testing::HasSubstr;

/// Six variables, each coded in another way, one of them for the CPU; 13 batches.
class Decoded {
 public:
  Decoded() : directory_(temporary_directory()) {
    server_ = std::make_unique<HandoffServer>(
        HandoffServer::Options{.views = {view_}, .deliveries = {&readers_, &host_}},
        Listener(directory_ + "/s"), log_);
  }
  ~Decoded() {
    server_ = nullptr;
    ::rmdir(directory_.c_str());
  }

  std::unique_ptr<SocketSource> open(std::uint64_t memory = 512 << 20, Mode mode = Mode::client,
                                     const CudaDecoderTable* decoder = &kEmulatedDecoder) {
    return std::make_unique<SocketSource>(connect_to(server_->path()),
                                          SocketSource::Options{.view = view_->name(),
                                                                .mode = mode,
                                                                .device = device,
                                                                .device_memory = memory,
                                                                .decoder = decoder},
                                          Interrupted{});
  }
  std::int64_t batches() const { return view_->batches(); }
  std::uint64_t from_host() const {
    const auto counts = readers_.statistics().fallbacks;
    return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  }
  std::size_t readers() const { return server_->statistics().readers; }
  void expect_right(const Batch& batch) {
    const auto right =
        engine_.open(BatchRequest{view_, &packed_format(), batch.epoch, batch.number});
    const BatchLayout layout = packed_format().layout(*view_, batch.number);
    for (std::size_t t = 0; t < batch.tensors.size(); ++t) {
      const Tensor& tensor = batch.tensors[t];
      const auto& place = layout.tensors[t];
      EXPECT_EQ(
          std::memcmp(tensor.data, right->files[place.file].data() + place.offset, tensor.bytes), 0)
          << batch.number << ", tensor " << t;
    }
  }

  std::shared_ptr<FakeDevice> device = std::make_shared<FakeDevice>();

 private:
  const MemoryData data_ = gpu::coded_data(53, 2, 20, 30);
  const std::shared_ptr<const View> view_ = [this] {
    Json pairs = Json::parse(gpu::kPairs);
    pairs["epochs"] = 3;
    return View::parse(data_.dataset(), pairs.dump(), "v", "test");
  }();
  Log log_;
  Engine engine_{{.threads = 2, .memory = 256 << 20}, log_};
  HostDelivery host_{engine_};
  ReaderDelivery readers_{engine_, host_, log_};
  std::string directory_;
  std::unique_ptr<HandoffServer> server_;
};

/// A library without a kernel for the reader's GPU.
constexpr CudaDecoderTable kNoKernel = [] {
  CudaDecoderTable table = kEmulatedDecoder;
  table.supports = [](int, CudaFailure* failure) {
    constexpr std::string_view kWhy =
        "the reader's GPU is not supported by this build: compute capability 7.0, built for 9.0";
    failure->text[kWhy.copy(failure->text, sizeof failure->text - 1)] = 0;
    failure->code = static_cast<std::uint32_t>(ErrorCode::not_supported);
    return -1;
  };
  return table;
}();

TEST(SocketSource, AGpuWithoutAKernelIsAnErrorInModeClientBeforeTheFirstBatch) {
  Decoded decoded;
  try {
    decoded.open(512 << 20, Mode::client, &kNoKernel);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_supported);
    EXPECT_STREQ(error.what(),
                 "the reader's GPU is not supported by this build: compute capability 7.0, "
                 "built for 9.0");
  }
}

TEST(SocketSource, AGpuWithoutAKernelGetsBatchesOfTheHostInModeAuto) {
  Decoded decoded;
  const auto source = decoded.open(512 << 20, Mode::automatic, &kNoKernel);
  EXPECT_STREQ(source->mode(), "shm");
  EXPECT_THAT(source->why_copied(), HasSubstr("compute capability 7.0"));
}

TEST(SocketSource, AReaderThatDecodesGetsTheEnginesBatches) {
  Decoded decoded;
  const auto source = decoded.open();
  EXPECT_STREQ(source->mode(), "client");
  source->start({0, 0, 1, decoded.batches()}, 2);
  for (std::int64_t b = 0; b < decoded.batches(); ++b) {
    const auto batch = source->next({});
    ASSERT_NE(batch, nullptr);
    EXPECT_EQ(batch->number, b);
    EXPECT_NE(batch->device, nullptr);
    decoded.expect_right(*batch);
  }
  EXPECT_EQ(source->why_copied(), "");
  EXPECT_EQ(decoded.from_host(), 0u);
}

TEST(SocketSource, ReadersInAnyPatternDecodeAllBatches) {
  struct Pattern {
    std::size_t held;
    std::uint32_t ahead;
  };
  for (const auto [held, ahead] : {Pattern{1, 0}, Pattern{1, 8}, Pattern{3, 2}}) {
    SCOPED_TRACE(held);
    Decoded decoded;
    const auto source = decoded.open();
    std::deque<std::shared_ptr<Batch>> kept;
    for (int pass = 0; pass < 4; ++pass) {  // starts again while it holds batches
      source->start({0, 0, 1, decoded.batches()}, ahead);
      for (int b = 0; b < 5; ++b) {
        kept.push_back(source->next({}));
        EXPECT_EQ(kept.back()->number, b);
        decoded.expect_right(*kept.back());
        if (kept.size() > held) kept.pop_front();
      }
    }
    EXPECT_EQ(source->why_copied(), "");
    EXPECT_EQ(decoded.from_host(), 0u);
  }
}

TEST(SocketSource, LeavingWithBatchesUnderWayIsNoFailure) {
  Decoded decoded;
  for (int round = 0; round < 10; ++round) {
    const auto source = decoded.open();
    source->start({0, 0, 1, decoded.batches()}, 4);
    decoded.expect_right(*source->next({}));
  }
  EXPECT_TRUE(eventually([&] { return decoded.readers() == 0; }));
  EXPECT_EQ(decoded.from_host(), 0u);
}

TEST(SocketSource, SlotsThatTheGpuStillWorksOnAreWaitedFor) {
  Decoded decoded;
  const auto source = decoded.open();
  // A training step that is queued: the consumer is ahead of it.
  std::jthread gpu([&](const std::stop_token& stop) {
    while (!stop.stop_requested() || decoded.device->end_oldest()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      decoded.device->end_oldest();
    }
  });
  std::shared_ptr<Batch> batch;  // held until the next one arrives
  for (const std::int64_t epoch : {0, 1, 2}) {
    source->start({epoch, 0, 1, decoded.batches()}, 2);
    for (std::int64_t b = 0; b < decoded.batches(); ++b) {
      batch = source->next({});
      ASSERT_NE(batch, nullptr);
      EXPECT_EQ(batch->number, b);
      decoded.expect_right(*batch);
      if (batch->use) batch->use->note(1);
    }
  }
  EXPECT_EQ(source->why_copied(), "");
  EXPECT_EQ(decoded.from_host(), 0u);
}

TEST(SocketSource, AGpuThatWaitsForItsConsumerStopsNothing) {
  Decoded decoded;
  const auto source = decoded.open();
  source->start({0, 0, 1, decoded.batches()}, 2);
  for (std::int64_t b = 0; b < decoded.batches() && decoded.from_host() == 0; ++b) {
    const auto batch = source->next({});
    EXPECT_EQ(batch->number, b);
    decoded.expect_right(*batch);
    if (batch->use) batch->use->note(1);
  }
  EXPECT_THAT(source->why_copied(), HasSubstr("slots_held"));
  while (decoded.device->end_oldest()) {
  }
}

TEST(SocketSource, BatchesOfTheHostAreCountedByTheirReason) {
  Decoded decoded;
  const auto source = decoded.open();
  EXPECT_EQ(source->get(0, 3, {})->number, 3);
  EXPECT_THAT(source->why_copied(), HasSubstr("1 of 1 batches were made on the host: 1 because"));
  EXPECT_THAT(source->why_copied(), HasSubstr("by_number"));
  const auto small = decoded.open(4 << 20);
  small->start({0, 0, 1, 2}, 2);
  for (int b = 0; b < 2; ++b) decoded.expect_right(*small->next({}));
  EXPECT_THAT(small->why_copied(), HasSubstr("2 of 2 batches were made on the host: 2 because"));
  EXPECT_THAT(small->why_copied(), HasSubstr("no_memory"));
  EXPECT_EQ(decoded.from_host(), 3u);
}

}  // namespace socket_source_test
}  // namespace batchfs::reader
