// The kernels, and a batch's way through them: one copy of compressed bytes and one of tables in, a launch
// per stage, the statuses out, all on one stream, with nothing allocated once memory has grown to the
// batches' size.

#include "gpu/device_decoder.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstring>

#include "engine/base/error.h"
#include "gpu/lz4.cuh"
#include "gpu/tables.h"
#include "gpu/unshuffle.cuh"
#include "gpu/zstd.cuh"

namespace batchfs::gpu {

namespace {

// Short LZ4 streams (Blosc's splits) fill the device by their number; a long one is a whole chunk.
constexpr int kShortLz4Threads = 256, kLongLz4Threads = 512, kLz4Tile = 8192;
// Frames come one per chunk and are long: all threads that a block can have, so that one frame is fast.
constexpr int kFrameThreads = 1024, kFrameTile = 8192;
// Many short frames (Blosc's blocks) fill the device by their number.
constexpr int kShortThreads = 512, kShortTile = 8192;
constexpr int kUnshuffleThreads = 256;

template <int kThreads>
__global__ void __launch_bounds__(kThreads, 1536 / kThreads) lz4_kernel(Work work, std::uint32_t first) {
  __shared__ Lz4Shared<kThreads, kLz4Tile> shared;
  lz4_stream(shared, work, first + blockIdx.x);
}

/// The sequences, which take longer, first.
__global__ void __launch_bounds__(kEntropyThreads, 8) zstd_entropy_kernel(Work work, std::uint32_t blocks) {
  __shared__ ZstdEntropyShared shared;
  if (blockIdx.x < blocks)
    zstd_block(shared, work, blockIdx.x, EntropyPart::sequences);
  else
    zstd_block(shared, work, blockIdx.x - blocks, EntropyPart::literals);
}

template <int kThreads, int kTile>
__global__ void __launch_bounds__(kThreads) zstd_frame_kernel(Work work) {
  __shared__ CopyShared<kThreads, kTile> shared;
  zstd_frame(shared, work, blockIdx.x);
}

__global__ void __launch_bounds__(kLanes) zstd_checksum_kernel(Work work) { zstd_checksum(work, blockIdx.x); }

__global__ void __launch_bounds__(kUnshuffleThreads) unshuffle_kernel(Work work) {
  unshuffle_slice<kUnshuffleThreads>(work, blockIdx.x, blockIdx.y);
}

void check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  throw Error(result == cudaErrorMemoryAllocation ? ErrorCode::no_memory : ErrorCode::io,
              std::string("the GPU failed to ") + what + ": " + cudaGetErrorString(result));
}

enum class Memory { device, pinned };

/// Memory that grows and is kept.
template <Memory kWhere>
class Growing {
 public:
  Growing() = default;
  Growing(const Growing&) = delete;
  Growing& operator=(const Growing&) = delete;
  ~Growing() { free(); }

  void reserve(std::size_t size) {
    if (size <= size_) return;
    free();
    const std::size_t rounded = (size + size / 8 + 255) / 256 * 256;
    check(kWhere == Memory::device ? cudaMalloc(&data_, rounded) : cudaMallocHost(&data_, rounded), "allocate memory");
    size_ = rounded;
  }
  template <class T = std::uint8_t>
  T* as() const {
    return static_cast<T*>(data_);
  }
  std::size_t size() const { return size_; }

 private:
  void free() {
    if (data_ != nullptr) kWhere == Memory::device ? cudaFree(data_) : cudaFreeHost(data_);
    data_ = nullptr;
    size_ = 0;
  }

  void* data_ = nullptr;
  std::size_t size_ = 0;
};

constexpr std::size_t aligned(std::size_t size) { return (size + 255) / 256 * 256; }

}  // namespace

int device_count() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

std::string why_no_device() {
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result != cudaSuccess) return cudaGetErrorString(result);
  return count > 0 ? "" : "the machine has no GPU";
}

std::string device_name(int device) {
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, device), "say its name");
  return properties.name;
}

PinnedBuffer::PinnedBuffer(std::size_t size) : size_(size) {
  void* data = nullptr;
  check(cudaMallocHost(&data, size), "pin host memory");
  data_ = static_cast<std::byte*>(data);
}

PinnedBuffer::~PinnedBuffer() { cudaFreeHost(data_); }

struct DeviceDecoder::Impl {
  /// What lies between two of these is a stage.
  enum Event { kBegin, kCopied, kLz4, kEntropy, kFrames, kUnshuffled, kEvents };

  int device = 0;
  bool timed = false;
  cudaStream_t stream = nullptr;
  cudaEvent_t events[kEvents] = {};
  Growing<Memory::device> source, target, planes, literals, runs, run_index, results, tables, status;
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
    const std::size_t streams = place(plan.lz4_streams), blocks = place(plan.zstd_blocks),
                      frames = place(plan.zstd_frames), rows = place(plan.unshuffles), places = place(plan.plane_places);
    if (size == 0) return;
    tables.reserve(size);
    host_tables.reserve(size);
    const auto put = [&]<class T>(const std::vector<T>& table, std::size_t at, const T*& where) {
      if (!table.empty()) std::memcpy(host_tables.as() + at, table.data(), table.size() * sizeof(T));
      where = reinterpret_cast<const T*>(tables.as() + at);
    };
    put(plan.lz4_streams, streams, work.lz4_streams);
    put(plan.zstd_blocks, blocks, work.zstd_blocks);
    put(plan.zstd_frames, frames, work.zstd_frames);
    put(plan.unshuffles, rows, work.unshuffles);
    put(plan.plane_places, places, work.plane_places);
    check(cudaMemcpyAsync(tables.as(), host_tables.as(), size, cudaMemcpyHostToDevice, stream), "copy tables");
  }

  void start(const DecodePlan& plan, const std::byte* bytes, std::size_t size, std::size_t target_size) {
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
    check(cudaMemcpyAsync(source.as(), bytes, size, cudaMemcpyHostToDevice, stream), "copy compressed bytes");
    check(cudaMemsetAsync(status.as(), 0, chunks * sizeof(std::uint32_t), stream), "clear statuses");
    mark(kCopied);
    launch(plan, work);
    check(cudaMemcpyAsync(host_status.as(), status.as(), chunks * sizeof(std::uint32_t), cudaMemcpyDeviceToHost, stream),
          "copy statuses");
  }

  void launch(const DecodePlan& plan, const Work& work) {
    const auto count = [](const auto& table) { return static_cast<unsigned>(table.size()); };
    unsigned long_ones = 0;  // the first: the plan is sorted
    while (long_ones < plan.lz4_streams.size() && plan.lz4_streams[long_ones].source_size > kLongLz4Stream) ++long_ones;
    const unsigned short_ones = count(plan.lz4_streams) - long_ones;
    if (long_ones > 0) lz4_kernel<kLongLz4Threads><<<long_ones, kLongLz4Threads, 0, stream>>>(work, 0);
    if (short_ones > 0) lz4_kernel<kShortLz4Threads><<<short_ones, kShortLz4Threads, 0, stream>>>(work, long_ones);
    mark(kLz4);
    if (!plan.zstd_blocks.empty())
      zstd_entropy_kernel<<<2 * count(plan.zstd_blocks), kEntropyThreads, 0, stream>>>(work, count(plan.zstd_blocks));
    mark(kEntropy);
    if (!plan.zstd_frames.empty()) {
      std::uint32_t longest = 0;
      bool checksums = false;
      for (const ZstdFrame& frame : plan.zstd_frames) {
        longest = std::max(longest, frame.size);
        checksums = checksums || frame.has_checksum;
      }
      const unsigned frames = count(plan.zstd_frames);
      if (longest > 4 * kZstdBlockSize)
        zstd_frame_kernel<kFrameThreads, kFrameTile><<<frames, kFrameThreads, 0, stream>>>(work);
      else
        zstd_frame_kernel<kShortThreads, kShortTile><<<frames, kShortThreads, 0, stream>>>(work);
      if (checksums) zstd_checksum_kernel<<<frames, kLanes, 0, stream>>>(work);
    }
    mark(kFrames);
    if (!plan.unshuffles.empty()) {
      const dim3 grid(count(plan.unshuffles), std::min(slices(plan.longest_unshuffle), 65535u));
      unshuffle_kernel<<<grid, kUnshuffleThreads, 0, stream>>>(work);
    }
    mark(kUnshuffled);
    check(cudaGetLastError(), "start a kernel");
  }
};

DeviceDecoder::DeviceDecoder(int device, Timing timing) : impl_(std::make_unique<Impl>(device, timing == Timing::on)) {}
DeviceDecoder::~DeviceDecoder() = default;

void DeviceDecoder::start(const DecodePlan& plan, const std::byte* source, std::size_t size, std::size_t target_size) {
  impl_->start(plan, source, size, target_size);
}

std::span<const std::uint32_t> DeviceDecoder::finish() {
  check(cudaStreamSynchronize(impl_->stream), "decode");
  return {impl_->host_status.as<std::uint32_t>(), impl_->chunks};
}

void* DeviceDecoder::target() const { return impl_->target.as(); }

void DeviceDecoder::read(std::size_t offset, std::span<std::byte> to) const {
  check(cudaMemcpy(to.data(), impl_->target.as() + offset, to.size(), cudaMemcpyDeviceToHost), "copy decoded bytes");
}

StageTimes DeviceDecoder::times() const {
  const auto between = [&](Impl::Event from, Impl::Event to) {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, impl_->events[from], impl_->events[to]), "say a time");
    return milliseconds;
  };
  return {between(Impl::kBegin, Impl::kCopied), between(Impl::kCopied, Impl::kLz4), between(Impl::kLz4, Impl::kEntropy),
          between(Impl::kEntropy, Impl::kFrames), between(Impl::kFrames, Impl::kUnshuffled)};
}

std::size_t DeviceDecoder::memory() const {
  const Impl& i = *impl_;
  return i.source.size() + i.target.size() + i.planes.size() + i.literals.size() + i.runs.size() + i.run_index.size() +
         i.results.size() + i.tables.size() + i.status.size();
}

}  // namespace batchfs::gpu
