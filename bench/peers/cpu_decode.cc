#include "bench/peers/cpu_decode.h"

#include <libdeflate.h>

#include <condition_variable>
#include <deque>
#include <mutex>

#include "gpu/stream/cuda_memory.h"

namespace batchfs::bench {

namespace {

/// Threads that run submitted work in order.
class Workers {
 public:
  Workers() {
    for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
      threads_.emplace_back([this] { run(); });
  }
  ~Workers() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void put(std::function<void()> work) {
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(std::move(work));
    }
    changed_.notify_one();
  }

 private:
  void run() {
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      const auto work = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      work();
    }
  }

  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

bool decode(Coding coding, const std::vector<std::byte>& chunk, std::byte* to, std::size_t size) {
  switch (coding) {
    case Coding::zstd3: {
      thread_local const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(
          ZSTD_createDCtx(), ZSTD_freeDCtx);
      return ZSTD_decompressDCtx(context.get(), to, size, chunk.data(), chunk.size()) == size;
    }
    case Coding::lz4_block:
      return LZ4_decompress_safe(
                 reinterpret_cast<const char*>(chunk.data()) + sizeof(std::uint32_t),
                 reinterpret_cast<char*>(to),
                 static_cast<int>(chunk.size() - sizeof(std::uint32_t)),
                 static_cast<int>(size)) == static_cast<int>(size);
    case Coding::zlib4: {
      thread_local const std::unique_ptr<libdeflate_decompressor,
                                         decltype(&libdeflate_free_decompressor)>
          decoder(libdeflate_alloc_decompressor(), libdeflate_free_decompressor);
      thread_local std::vector<std::byte> planes;
      planes.resize(size);
      if (libdeflate_zlib_decompress(decoder.get(), chunk.data(), chunk.size(), planes.data(), size,
                                     nullptr) != LIBDEFLATE_SUCCESS)
        return false;
      const std::size_t items = size / sizeof(float);
      for (std::size_t i = 0; i < items; ++i)
        for (std::size_t b = 0; b < sizeof(float); ++b)
          to[i * sizeof(float) + b] = planes[b * items + i];
      return true;
    }
    default:
      return blosc_decompress_ctx(chunk.data(), to, size, 1) == static_cast<int>(size);
  }
}

class CpuFlight final : public Flight {
 public:
  CpuFlight(const Chunks& chunks, std::shared_ptr<Workers> workers, std::size_t most)
      : chunks_(chunks), workers_(std::move(workers)) {
    pinned_.reserve(most * chunks.decoded_size);
    device_.reserve(most * chunks.decoded_size);
    gpu::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "make a stream");
  }
  ~CpuFlight() override {
    wait();
    cudaStreamDestroy(stream_);
  }

  void start(std::size_t first, std::size_t count) override {
    left_ = count;
    decoded_ = 0;
    for (std::size_t i = 0; i < count; ++i)
      workers_->put([this, first, i] { bring(first + i, i * chunks_.decoded_size); });
  }

  std::size_t finish() override {
    wait();
    gpu::check(cudaStreamSynchronize(stream_), "copy chunks");
    return decoded_;
  }

  void read(std::size_t offset, std::span<std::byte> to) const override {
    gpu::check(cudaMemcpy(to.data(), device_.as() + offset, to.size(), cudaMemcpyDeviceToHost),
               "copy decoded bytes");
  }

 private:
  void bring(std::size_t chunk, std::size_t offset) {
    const std::size_t size = chunks_.decoded_size;
    const bool right =
        decode(chunks_.coding, chunks_.encoded[chunk], pinned_.as<std::byte>() + offset, size) &&
        cudaMemcpyAsync(device_.as() + offset, pinned_.as() + offset, size, cudaMemcpyHostToDevice,
                        stream_) == cudaSuccess;
    const std::lock_guard lock(mutex_);
    if (right) decoded_ += size;
    --left_;
    changed_.notify_all();
  }

  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return left_ == 0; });
  }

  const Chunks& chunks_;
  const std::shared_ptr<Workers> workers_;
  gpu::Growing<gpu::Memory::pinned> pinned_;
  gpu::Growing<gpu::Memory::device> device_;
  cudaStream_t stream_ = nullptr;
  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::size_t left_ = 0, decoded_ = 0;
};

}  // namespace

Decoder cpu_decoder(const Chunks& chunks) {
  return [&chunks, workers = std::make_shared<Workers>()](std::size_t most) {
    return std::make_unique<CpuFlight>(chunks, workers, most);
  };
}

}  // namespace batchfs::bench
