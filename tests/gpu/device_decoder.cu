// Runs a batch through the kernels: one copy of compressed bytes and one of tables in, a launch per
// stage, the statuses out, all on one stream. Nothing is allocated once memory has grown to the
// batches' size.

#include "tests/gpu/device_decoder.h"

#include <cstring>

#include "gpu/kernels/kernels.h"
#include "gpu/stream/cuda_memory.h"

namespace batchfs::gpu {

namespace {

constexpr std::size_t aligned(std::size_t size) { return (size + 255) / 256 * 256; }

}  // namespace

struct DeviceDecoder::Impl {
  /// Each stage lies between two consecutive events.
  enum Event { kBegin, kCopied, kLz4, kDeflate, kEntropy, kFrames, kUnshuffled, kEvents };

  int device = 0;
  bool timed = false;
  cudaStream_t stream = nullptr;
  cudaEvent_t events[kEvents] = {};
  Growing<Memory::device> source, target, planes, literals, runs, run_index, results, tables,
      status;
  Growing<Memory::pinned> host_tables, host_status;
  std::size_t chunks = 0;

  Impl(int device_number, bool with_times) : device(device_number), timed(with_times) {
    check(cudaSetDevice(device), "be chosen");
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "make a stream");
    for (cudaEvent_t& event : events)
      if (timed) check(cudaEventCreate(&event), "make an event");
  }

  ~Impl() {
    cudaStreamSynchronize(stream);
    for (cudaEvent_t event : events)
      if (event != nullptr) cudaEventDestroy(event);
    cudaStreamDestroy(stream);
  }

  void mark(Event event) {
    if (timed) check(cudaEventRecord(events[event], stream), "record an event");
  }

  /// Copies the tables, one after the other, and points `work` at them.
  void upload_tables(const DecodePlan& plan, Work& work) {
    std::size_t size = 0;
    const auto place = [&](const auto& table) {
      const std::size_t at = size;
      size += aligned(table.size() * sizeof table[0]);
      return at;
    };
    const std::size_t streams = place(plan.lz4_streams),
                      deflate_streams = place(plan.deflate_streams),
                      blocks = place(plan.zstd_blocks), frames = place(plan.zstd_frames),
                      rows = place(plan.unshuffles), places = place(plan.plane_places);
    if (size == 0) return;
    tables.reserve(size);
    host_tables.reserve(size);
    const auto put = [&]<class T>(const std::vector<T>& table, std::size_t at, const T*& where) {
      if (!table.empty())
        std::memcpy(host_tables.as() + at, table.data(), table.size() * sizeof(T));
      where = reinterpret_cast<const T*>(tables.as() + at);
    };
    put(plan.lz4_streams, streams, work.lz4_streams);
    put(plan.deflate_streams, deflate_streams, work.deflate_streams);
    put(plan.zstd_blocks, blocks, work.zstd_blocks);
    put(plan.zstd_frames, frames, work.zstd_frames);
    put(plan.unshuffles, rows, work.unshuffles);
    put(plan.plane_places, places, work.plane_places);
    check(cudaMemcpyAsync(tables.as(), host_tables.as(), size, cudaMemcpyHostToDevice, stream),
          "copy tables");
  }

  void start(const DecodePlan& plan, const std::byte* bytes, std::size_t size,
             std::size_t target_size) {
    check(cudaSetDevice(device), "be chosen");
    chunks = plan.chunks();
    source.reserve(size + 16);
    target.reserve(target_size);
    planes.reserve(plan.planes);
    literals.reserve(plan.literals);
    runs.reserve(plan.runs * sizeof(Run));
    run_index.reserve(plan.run_index * sizeof(std::uint32_t));
    results.reserve(plan.zstd_blocks.size() * sizeof(ZstdBlockResult));
    status.reserve(chunks * sizeof(std::uint32_t));
    host_status.reserve(chunks * sizeof(std::uint32_t));

    Work work;
    work.source = source.as();
    work.planes = planes.as();
    work.target = target.as();
    work.literals = literals.as();
    work.runs = runs.as<Run>();
    work.run_index = run_index.as<std::uint32_t>();
    work.status = status.as<std::uint32_t>();
    work.zstd_results = results.as<ZstdBlockResult>();
    mark(kBegin);
    upload_tables(plan, work);
    check(cudaMemcpyAsync(source.as(), bytes, size, cudaMemcpyHostToDevice, stream),
          "copy compressed bytes");
    check(cudaMemsetAsync(status.as(), 0, chunks * sizeof(std::uint32_t), stream),
          "clear statuses");
    mark(kCopied);
    launch(plan, work);
    check(cudaMemcpyAsync(host_status.as(), status.as(), chunks * sizeof(std::uint32_t),
                          cudaMemcpyDeviceToHost, stream),
          "copy statuses");
  }

  void launch(const DecodePlan& plan, const Work& work) {
    launch_lz4(work, plan.lz4_streams, stream);
    mark(kLz4);
    launch_deflate(work, plan.deflate_streams.size(), stream);
    mark(kDeflate);
    launch_zstd_entropy(work, plan.zstd_blocks.size(), stream);
    mark(kEntropy);
    launch_zstd_frames(work, plan.zstd_frames, stream);
    mark(kFrames);
    launch_unshuffle(work, plan.unshuffles.size(), plan.longest_unshuffle, stream);
    mark(kUnshuffled);
    check(cudaGetLastError(), "start a kernel");
  }
};

DeviceDecoder::DeviceDecoder(int device, Timing timing)
    : impl_(std::make_unique<Impl>(device, timing == Timing::on)) {}
DeviceDecoder::~DeviceDecoder() = default;

void DeviceDecoder::start(const DecodePlan& plan, const std::byte* source, std::size_t size,
                          std::size_t target_size) {
  impl_->start(plan, source, size, target_size);
}

std::span<const std::uint32_t> DeviceDecoder::finish() {
  check(cudaStreamSynchronize(impl_->stream), "decode");
  return {impl_->host_status.as<std::uint32_t>(), impl_->chunks};
}

void* DeviceDecoder::target() const { return impl_->target.as(); }

void DeviceDecoder::read(std::size_t offset, std::span<std::byte> to) const {
  check(cudaMemcpy(to.data(), impl_->target.as() + offset, to.size(), cudaMemcpyDeviceToHost),
        "copy decoded bytes");
}

StageTimes DeviceDecoder::times() const {
  const auto between = [&](Impl::Event from, Impl::Event to) {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, impl_->events[from], impl_->events[to]),
          "say a time");
    return milliseconds;
  };
  return {between(Impl::kBegin, Impl::kCopied),   between(Impl::kCopied, Impl::kLz4),
          between(Impl::kLz4, Impl::kDeflate),    between(Impl::kDeflate, Impl::kEntropy),
          between(Impl::kEntropy, Impl::kFrames), between(Impl::kFrames, Impl::kUnshuffled)};
}

std::size_t DeviceDecoder::memory() const {
  const Impl& i = *impl_;
  return i.source.size() + i.target.size() + i.planes.size() + i.literals.size() + i.runs.size() +
         i.run_index.size() + i.results.size() + i.tables.size() + i.status.size();
}

}  // namespace batchfs::gpu
