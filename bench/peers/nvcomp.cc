#include "bench/peers/nvcomp.h"

#include <dlfcn.h>
#include <nvcomp/deflate.h>
#include <nvcomp/lz4.h>
#include <nvcomp/zstd.h>

#include <algorithm>

#include "gpu/kernels/kernels.h"
#include "gpu/stream/cuda_memory.h"

namespace batchfs::bench {

namespace {

using gpu::Growing;
using gpu::Memory;

constexpr std::size_t kAlignment = 16;
constexpr std::size_t aligned(std::size_t size) {
  return (size + kAlignment - 1) / kAlignment * kAlignment;
}

/// The functions that are used of it.
struct Nvcomp {
  std::string why_not;
  decltype(&nvcompBatchedLZ4DecompressGetTempSize) lz4_temp = nullptr;
  decltype(&nvcompBatchedLZ4DecompressAsync) lz4 = nullptr;
  decltype(&nvcompBatchedDeflateDecompressGetTempSize) deflate_temp = nullptr;
  decltype(&nvcompBatchedDeflateDecompressAsync) deflate = nullptr;
  decltype(&nvcompBatchedZstdDecompressGetTempSize) zstd_temp = nullptr;
  decltype(&nvcompBatchedZstdDecompressAsync) zstd = nullptr;

  Nvcomp() {
    void* library = dlopen("libnvcomp.so.6", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) library = dlopen(BATCHFS_NVCOMP_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      why_not = dlerror();
      return;
    }
    const auto find = [&](auto& function, const char* name) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      if (function == nullptr) why_not = std::string("its library has no ") + name;
    };
    find(lz4_temp, "nvcompBatchedLZ4DecompressGetTempSize");
    find(lz4, "nvcompBatchedLZ4DecompressAsync");
    find(deflate_temp, "nvcompBatchedDeflateDecompressGetTempSize");
    find(deflate, "nvcompBatchedDeflateDecompressAsync");
    find(zstd_temp, "nvcompBatchedZstdDecompressGetTempSize");
    find(zstd, "nvcompBatchedZstdDecompressAsync");
  }
};

const Nvcomp& nvcomp() {
  static const Nvcomp loaded;
  return loaded;
}

void check(nvcompStatus_t status, const char* what) {
  if (status != nvcompSuccess)
    throw std::runtime_error(std::string("nvCOMP fails to ") + what + ": status " +
                             std::to_string(status));
}

/// Offsets are from the chunk's begin, in the packed bytes, the planes or the decoded chunk.
struct Stream {
  std::size_t from, stored, to, size;
};
struct PackedChunk {
  std::size_t begin = 0;             // in the packed bytes
  std::size_t planes = 0, kept = 0;  // bytes of planes; of streams that were stored as they are
  std::vector<Stream> streams;
  std::vector<gpu::Unshuffle> rows;  // none: streams go into the decoded chunk
  std::vector<gpu::Place> places;
};

/// All chunks, as nvCOMP can take them, one after the other in pinned memory.
class Packed {
 public:
  explicit Packed(const Chunks& chunks)
      : coding_(chunks.coding), decoded_size_(chunks.decoded_size) {
    for (const auto& chunk : chunks.encoded) {
      chunks_.emplace_back().begin = bytes_.size();
      if (coding_ == Coding::zstd3)
        whole(chunk, 0);
      else if (coding_ == Coding::lz4_block)
        whole(chunk, sizeof(std::uint32_t));
      else if (coding_ == Coding::zlib4)
        zlib(chunk);
      else
        blosc(chunk);
    }
    pinned_.reserve(bytes_.size());
    std::memcpy(pinned_.as(), bytes_.data(), bytes_.size());
  }

  bool is_deflate() const { return coding_ == Coding::zlib4; }
  bool is_lz4() const { return coding_ == Coding::blosc_lz4 || coding_ == Coding::lz4_block; }
  std::size_t decoded_size() const { return decoded_size_; }
  std::span<const PackedChunk> chunks() const { return chunks_; }
  const std::byte* data() const { return pinned_.as<std::byte>(); }
  std::size_t end_of(std::size_t chunk) const {
    return chunk + 1 < chunks_.size() ? chunks_[chunk + 1].begin : bytes_.size();
  }

 private:
  /// Appends stored bytes. Returns their offset in the chunk.
  std::size_t put(std::span<const std::byte> bytes) {
    const std::size_t at = bytes_.size() - chunks_.back().begin;
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    bytes_.resize(aligned(bytes_.size()));
    return at;
  }

  void whole(std::span<const std::byte> chunk, std::size_t header) {
    chunks_.back().streams.push_back(
        {put(chunk.subspan(header)), chunk.size() - header, 0, decoded_size_});
  }

  /// A stream of zlib with shuffled float32, without its header and checksum.
  void zlib(std::span<const std::byte> chunk) {
    PackedChunk& packed = chunks_.back();
    gpu::Unshuffle row;
    row.size = static_cast<std::uint32_t>(decoded_size_);
    row.item = sizeof(float);
    row.order = gpu::Order::shuffled;
    packed.rows.push_back(row);
    packed.places.push_back({gpu::Area::planes, 0});
    packed.planes = aligned(decoded_size_);
    packed.streams.push_back(
        {put(chunk.subspan(2, chunk.size() - 6)), chunk.size() - 6, 0, decoded_size_});
  }

  /// A Blosc 1 container with shuffled float32, as gpu_fields.h makes them.
  void blosc(std::span<const std::byte> chunk) {
    const auto u32_at = [&](std::size_t at) {
      std::uint32_t value;
      std::memcpy(&value, chunk.data() + at, sizeof value);
      return value;
    };
    constexpr std::size_t kHeader = 16;
    constexpr std::uint32_t kNotSplit = 0x10;
    PackedChunk& packed = chunks_.back();
    const std::size_t block = u32_at(8);
    for (std::size_t at = 0, i = 0; at < decoded_size_; at += block, ++i) {
      gpu::Unshuffle row;
      row.target = at;
      row.size = static_cast<std::uint32_t>(std::min(block, decoded_size_ - at));
      row.planes = static_cast<std::uint32_t>(packed.places.size());
      row.item = sizeof(float);
      row.order = gpu::Order::shuffled;
      row.split = (static_cast<std::uint32_t>(chunk[2]) & kNotSplit) == 0 && row.size == block;
      packed.rows.push_back(row);
      const std::size_t parts = row.split ? sizeof(float) : 1, size = row.size / parts;
      std::size_t from = u32_at(kHeader + i * sizeof(std::uint32_t));
      for (std::size_t part = 0; part < parts; ++part) {
        const std::size_t stored = u32_at(from);
        from += sizeof(std::uint32_t);
        const std::size_t at_packed = put(chunk.subspan(from, stored));
        from += stored;
        if (stored == size) {
          packed.places.push_back({gpu::Area::source, at_packed});
          packed.kept += size;
        } else {
          packed.places.push_back({gpu::Area::planes, packed.planes});
          packed.streams.push_back({at_packed, stored, packed.planes, size});
          packed.planes += aligned(size);
        }
      }
    }
  }

  const Coding coding_;
  const std::size_t decoded_size_;
  std::vector<PackedChunk> chunks_;
  std::vector<std::byte> bytes_;
  Growing<Memory::pinned> pinned_;
};

class NvcompFlight final : public Flight {
 public:
  NvcompFlight(std::shared_ptr<const Packed> packed, std::size_t most)
      : packed_(std::move(packed)) {
    target_.reserve(most * packed_->decoded_size());
    gpu::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "make a stream");
    for (cudaEvent_t& event : events_) gpu::check(cudaEventCreate(&event), "make an event");
  }
  ~NvcompFlight() override {
    cudaStreamSynchronize(stream_);
    for (const cudaEvent_t event : events_) cudaEventDestroy(event);
    cudaStreamDestroy(stream_);
  }

  void start(std::size_t first, std::size_t count) override {
    const std::span<const PackedChunk> chunks = packed_->chunks().subspan(first, count);
    const std::size_t begin = chunks.front().begin,
                      size = packed_->end_of(first + count - 1) - begin;
    streams_ = rows_ = kept_ = 0;
    std::size_t places = 0, planes = 0, longest = 0, longest_row = 0;
    for (const PackedChunk& chunk : chunks) {
      streams_ += chunk.streams.size();
      rows_ += chunk.rows.size();
      places += chunk.places.size();
      planes += chunk.planes;
      kept_ += chunk.kept;
      for (const Stream& stream : chunk.streams) longest = std::max(longest, stream.size);
      for (const gpu::Unshuffle& row : chunk.rows)
        longest_row = std::max<std::size_t>(longest_row, row.size);
    }
    source_.reserve(size + kAlignment);
    planes_.reserve(planes + kAlignment);
    const std::size_t pointers = aligned(streams_ * sizeof(void*));
    const std::size_t rows_at = 4 * pointers,
                      places_at = rows_at + aligned(rows_ * sizeof(gpu::Unshuffle)),
                      tables = places_at + places * sizeof(gpu::Place);
    tables_.reserve(tables);
    host_tables_.reserve(tables);
    results_.reserve(pointers + aligned(streams_ * sizeof(nvcompStatus_t)));
    host_results_.reserve(streams_ * sizeof(nvcompStatus_t));

    auto* from = host_tables_.as<const std::uint8_t*>();
    auto* stored = reinterpret_cast<std::size_t*>(host_tables_.as() + pointers);
    auto* room = reinterpret_cast<std::size_t*>(host_tables_.as() + 2 * pointers);
    auto* to = reinterpret_cast<std::uint8_t**>(host_tables_.as() + 3 * pointers);
    auto* row_to = reinterpret_cast<gpu::Unshuffle*>(host_tables_.as() + rows_at);
    auto* place_to = reinterpret_cast<gpu::Place*>(host_tables_.as() + places_at);
    std::size_t plane = 0, place = 0, number = 0;
    for (const PackedChunk& chunk : chunks) {
      std::uint8_t* out = chunk.rows.empty() ? target_.as() + number * packed_->decoded_size()
                                             : planes_.as() + plane;
      for (const Stream& stream : chunk.streams) {
        *from++ = source_.as() + (chunk.begin - begin) + stream.from;
        *stored++ = stream.stored;
        *room++ = stream.size;
        *to++ = out + stream.to;
      }
      for (gpu::Unshuffle row : chunk.rows) {
        row.target += number * packed_->decoded_size();
        row.planes += static_cast<std::uint32_t>(place);
        *row_to++ = row;
      }
      for (gpu::Place one : chunk.places) {
        one.offset += one.area == gpu::Area::source ? chunk.begin - begin : plane;
        *place_to++ = one;
      }
      plane += chunk.planes;
      place += chunk.places.size();
      ++number;
    }
    first_ = first;
    count_ = count;

    std::size_t temporary = 0;
    const std::size_t total = planes > 0 ? planes : count * packed_->decoded_size();
    if (packed_->is_lz4())
      check(nvcomp().lz4_temp(streams_, longest, nvcompBatchedLZ4DecompressDefaultOpts, &temporary,
                              total, stream_),
            "say its memory");
    else if (packed_->is_deflate())
      check(nvcomp().deflate_temp(streams_, longest, nvcompBatchedDeflateDecompressDefaultOpts,
                                  &temporary, total, stream_),
            "say its memory");
    else
      check(nvcomp().zstd_temp(streams_, longest, nvcompBatchedZstdDecompressDefaultOpts,
                               &temporary, total, stream_),
            "say its memory");
    temporary_.reserve(temporary);

    gpu::check(
        cudaMemcpyAsync(tables_.as(), host_tables_.as(), tables, cudaMemcpyHostToDevice, stream_),
        "copy tables");
    gpu::check(cudaMemcpyAsync(source_.as(), packed_->data() + begin, size, cudaMemcpyHostToDevice,
                               stream_),
               "copy compressed bytes");
    gpu::check(cudaEventRecord(events_[0], stream_), "record an event");
    const auto decompress = [&](auto function, const auto& options) {
      check(function(reinterpret_cast<const void* const*>(tables_.as()),
                     reinterpret_cast<const std::size_t*>(tables_.as() + pointers),
                     reinterpret_cast<const std::size_t*>(tables_.as() + 2 * pointers),
                     results_.as<std::size_t>(), streams_, temporary_.as(), temporary,
                     reinterpret_cast<void* const*>(tables_.as() + 3 * pointers), options,
                     reinterpret_cast<nvcompStatus_t*>(results_.as() + pointers), stream_),
            "start");
    };
    if (packed_->is_lz4())
      decompress(nvcomp().lz4, nvcompBatchedLZ4DecompressDefaultOpts);
    else if (packed_->is_deflate())
      decompress(nvcomp().deflate, nvcompBatchedDeflateDecompressDefaultOpts);
    else
      decompress(nvcomp().zstd, nvcompBatchedZstdDecompressDefaultOpts);
    gpu::Work work;
    work.source = source_.as();
    work.planes = planes_.as();
    work.target = target_.as();
    work.unshuffles = reinterpret_cast<const gpu::Unshuffle*>(tables_.as() + rows_at);
    work.plane_places = reinterpret_cast<const gpu::Place*>(tables_.as() + places_at);
    gpu::launch_unshuffle(work, rows_, static_cast<std::uint32_t>(longest_row), stream_);
    gpu::check(cudaEventRecord(events_[1], stream_), "record an event");
    gpu::check(cudaMemcpyAsync(host_results_.as(), results_.as() + pointers,
                               streams_ * sizeof(nvcompStatus_t), cudaMemcpyDeviceToHost, stream_),
               "copy statuses");
    gpu::check(cudaGetLastError(), "start a kernel");
  }

  std::size_t finish() override {
    gpu::check(cudaStreamSynchronize(stream_), "decode");
    std::size_t decoded = kept_;
    refused_ = 0;
    const auto* status = host_results_.as<nvcompStatus_t>();
    for (const PackedChunk& chunk : packed_->chunks().subspan(first_, count_))
      for (const Stream& stream : chunk.streams) {
        if (*status++ == nvcompSuccess)
          decoded += stream.size;
        else
          ++refused_;
      }
    return decoded;
  }

  double kernel_milliseconds() const override {
    float milliseconds = 0;
    gpu::check(cudaEventElapsedTime(&milliseconds, events_[0], events_[1]), "say a time");
    return milliseconds;
  }
  std::size_t refused() const override { return refused_; }

  void read(std::size_t offset, std::span<std::byte> to) const override {
    gpu::check(cudaMemcpy(to.data(), target_.as() + offset, to.size(), cudaMemcpyDeviceToHost),
               "copy decoded bytes");
  }

 private:
  const std::shared_ptr<const Packed> packed_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t events_[2] = {};
  /// Tables: positions and sizes of streams, sizes and positions of their output; rows; places.
  Growing<Memory::device> source_, planes_, target_, tables_, results_, temporary_;
  Growing<Memory::pinned> host_tables_, host_results_;
  std::size_t first_ = 0, count_ = 0, streams_ = 0, rows_ = 0, kept_ = 0, refused_ = 0;
};

}  // namespace

std::string why_no_nvcomp() { return nvcomp().why_not; }

Decoder nvcomp_decoder(const Chunks& chunks) {
  return [packed = std::make_shared<const Packed>(chunks)](std::size_t most) {
    return std::make_unique<NvcompFlight>(packed, most);
  };
}

}  // namespace batchfs::bench
