// bench/gpu_decode: how fast a GPU decodes chunks of float32 fields, in GB/s of decoded bytes.
//
// `resident` is the kernels of one batch alone, the compressed bytes already on the device; `pipe` is a
// steady flow from pinned host memory, planning on the host and copies included, with the batch cut into a
// few parts whose copies and kernels overlap. Every chunk is compared with its field first.
//
//   gpu_decode [--resident] [CODING]…     all codings by default; --resident leaves the pipes out

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string_view>

#include "bench/gpu_fields.h"
#include "gpu/device_decoder.h"

namespace batchfs {
namespace {

using Clock = std::chrono::steady_clock;
using bench::Coding;
using bench::Field;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

gpu::Verdict add(gpu::DecodePlan& plan, Coding coding, std::span<const std::byte> chunk, std::uint64_t source,
                 std::uint64_t target, std::uint64_t size) {
  switch (coding) {
    case Coding::zstd3: return plan.add_zstd(chunk, source, target, size);
    case Coding::lz4_block: return plan.add_lz4(chunk, source, target, size);
    default: return plan.add_blosc(chunk, source, target, size);
  }
}

/// Chunks of one kind, one after the other in pinned memory.
class Chunks {
 public:
  Chunks(Field field, Coding coding, std::size_t steps, std::size_t count)
      : coding_(coding), size_(steps * bench::kRows * bench::kColumns * sizeof(float)), fields_(count) {
    std::vector<std::vector<std::byte>> chunks(count);
    bench::on_all_cores(count, [&](std::size_t i) {
      fields_[i] = bench::make_field(field, static_cast<unsigned>(i), steps);
      chunks[i] = bench::encoded(coding, fields_[i]);
    });
    begins_.push_back(0);
    for (const auto& chunk : chunks) begins_.push_back(begins_.back() + (chunk.size() + 15) / 16 * 16);
    pinned_ = std::make_unique<gpu::PinnedBuffer>(begins_.back());
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(pinned_->data() + begins_[i], chunks[i].data(), chunks[i].size());
      sizes_.push_back(chunks[i].size());
    }
  }

  std::size_t count() const { return fields_.size(); }
  std::size_t decoded_size() const { return size_; }
  double ratio() const { return static_cast<double>(size_) * static_cast<double>(count()) / static_cast<double>(begins_.back()); }

  /// Starts `count` chunks from `first` on.
  void start(gpu::DeviceDecoder& decoder, std::size_t first, std::size_t count) {
    plan_.clear();
    for (std::size_t i = 0; i < count; ++i)
      if (add(plan_, coding_, {pinned_->data() + begins_[first + i], sizes_[first + i]}, begins_[first + i] - begins_[first],
              i * size_, size_) != gpu::Verdict::planned)
        throw std::runtime_error("a chunk is not planned");
    plan_.finish();
    decoder.start(plan_, pinned_->data() + begins_[first], begins_[first + count] - begins_[first], count * size_);
  }

  /// Waits for the chunks from `first` on and says whether all are right.
  bool right(gpu::DeviceDecoder& decoder, std::size_t first) {
    const auto statuses = decoder.finish();
    std::vector<std::byte> decoded(size_);
    for (std::size_t i = 0; i < statuses.size(); ++i) {
      decoder.read(i * size_, decoded);
      if (statuses[i] != gpu::kDecoded || std::memcmp(decoded.data(), fields_[first + i].data(), size_) != 0) return false;
    }
    return true;
  }

 private:
  Coding coding_;
  std::size_t size_;
  std::vector<std::vector<float>> fields_;
  std::vector<std::size_t> begins_, sizes_;
  std::unique_ptr<gpu::PinnedBuffer> pinned_;
  gpu::DecodePlan plan_;
};

constexpr double kMiB = 1 << 20;

/// GB/s of a steady flow with `in_flight` bytes of output cut into `parts`.
double pipe(Chunks& chunks, double in_flight, std::size_t parts) {
  const auto each = std::max<std::size_t>(1, static_cast<std::size_t>(in_flight / static_cast<double>(parts) /
                                                                      static_cast<double>(chunks.decoded_size()) + 0.5));
  std::vector<std::unique_ptr<gpu::DeviceDecoder>> decoders;
  for (std::size_t i = 0; i < parts; ++i) decoders.push_back(std::make_unique<gpu::DeviceDecoder>(0));
  const std::size_t sets = chunks.count() / each;
  std::size_t next = 0, done = 0;
  Clock::time_point begin;
  constexpr double kWarmUp = 0.05, kMeasured = 0.4;
  const Clock::time_point origin = Clock::now();
  bool warm = false;
  for (std::size_t turn = 0;; ++turn) {
    gpu::DeviceDecoder& decoder = *decoders[turn % parts];
    if (turn >= parts) {
      for (const std::uint32_t status : decoder.finish())
        if (status != gpu::kDecoded) throw std::runtime_error("a chunk does not decode");
      if (warm) ++done;
      if (warm && seconds_since(begin) > kMeasured) break;
      if (!warm && seconds_since(origin) > kWarmUp && turn >= 3 * parts) {
        warm = true;
        begin = Clock::now();
      }
    }
    chunks.start(decoder, next % sets * each, each);
    ++next;
  }
  const double seconds = seconds_since(begin);
  for (auto& decoder : decoders) decoder->finish();
  return static_cast<double>(done * each * chunks.decoded_size()) / seconds / 1e9;
}

struct Resident {
  double rate = 0, plan_ms = 0;
  gpu::StageTimes stages;
};

Resident resident(Chunks& chunks, double in_flight) {
  const auto count = std::min(chunks.count(), std::max<std::size_t>(1, static_cast<std::size_t>(
                                                  in_flight / static_cast<double>(chunks.decoded_size()) + 0.5)));
  gpu::DeviceDecoder decoder(0, gpu::DeviceDecoder::Timing::on);
  Resident best;
  for (int round = 0; round < 6; ++round) {
    const Clock::time_point begin = Clock::now();
    chunks.start(decoder, 0, count);
    const double plan = seconds_since(begin);
    decoder.finish();
    const gpu::StageTimes t = decoder.times();
    const double ms = t.lz4 + t.zstd_entropy + t.zstd_frames + t.unshuffle;
    const double rate = static_cast<double>(count * chunks.decoded_size()) / ms / 1e6;
    if (rate > best.rate) best = {rate, plan * 1e3, t};
  }
  return best;
}

int run(const std::vector<std::string_view>& codings, bool with_pipes) {
  if (const std::string why = gpu::why_no_device(); !why.empty()) {
    std::printf("no GPU to measure: %s\n", why.c_str());
    return 0;
  }
  std::printf("%s; GB/s of decoded float32; pipe: from pinned host memory, 4 or 8 parts in flight\n", gpu::device_name(0).c_str());
  std::printf("%-7s %-10s %7s %5s | resident %6s %7s | pipe 4x %5s %7s | pipe 8x %5s %7s | ms at 64: plan copy lz4 entropy frames unshuffle | %s\n",
              "data", "coding", "chunk", "ratio", "64", "256", "64", "256", "64", "256", "bytes");
  struct Case {
    Field field;
    Coding coding;
    std::size_t steps;
  };
  const Case cases[] = {
      {Field::grib16, Coding::blosc_lz4, 1}, {Field::grib16, Coding::blosc_zstd, 1}, {Field::grib16, Coding::zstd3, 1},
      {Field::grib16, Coding::zstd3, 5},     {Field::grib16, Coding::lz4_block, 1},  {Field::smooth, Coding::blosc_lz4, 1},
      {Field::smooth, Coding::blosc_zstd, 1}, {Field::smooth, Coding::zstd3, 1}};
  int wrong = 0;
  for (const Case& c : cases) {
    if (!codings.empty() && std::find(codings.begin(), codings.end(), bench::name_of(c.coding)) == codings.end()) continue;
    const auto flow = [&](Chunks& chunks, double in_flight, std::size_t parts) {
      return with_pipes ? pipe(chunks, in_flight, parts) : 0;
    };
    Chunks chunks(c.field, c.coding, c.steps, 80 / c.steps);
    gpu::DeviceDecoder decoder(0);
    chunks.start(decoder, 0, chunks.count());
    const bool right = chunks.right(decoder, 0);
    wrong += !right;
    const Resident small = resident(chunks, 64 * kMiB), large = resident(chunks, 256 * kMiB);
    std::printf("%-7s %-10s %5.2fMB %5.2f | %15.1f %7.1f | %13.1f %7.1f | %13.1f %7.1f | %14.2f %4.2f %4.2f %7.2f %6.2f %9.2f | %s\n",
                c.field == Field::grib16 ? "grib16" : "smooth", bench::name_of(c.coding),
                static_cast<double>(chunks.decoded_size()) / 1e6, chunks.ratio(), small.rate, large.rate,
                flow(chunks, 64 * kMiB, 4), flow(chunks, 256 * kMiB, 4), flow(chunks, 64 * kMiB, 8),
                flow(chunks, 256 * kMiB, 8), small.plan_ms, small.stages.copy, small.stages.lz4, small.stages.zstd_entropy,
                small.stages.zstd_frames, small.stages.unshuffle, right ? "right" : "WRONG");
    std::fflush(stdout);
  }
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace batchfs

int main(int argc, char** argv) {
  std::vector<std::string_view> codings(argv + 1, argv + argc);
  const auto option = std::remove(codings.begin(), codings.end(), "--resident");
  const bool with_pipes = option == codings.end();
  codings.erase(option, codings.end());
  try {
    return batchfs::run(codings, with_pipes);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_decode: %s\n", error.what());
    return 1;
  }
}
