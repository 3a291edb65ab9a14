// bench/gpu_decode: how fast decoders bring chunks of float32 fields to a GPU, in GB/s of decoded
// bytes: batchfs's, nvCOMP's batched ones (peers/nvcomp.h), and the CPU libraries on all cores with
// a copy (peers/cpu_decode.h).
//
// `resident` is the kernels of one batch alone, the compressed bytes already on the device, 64 and
// 256 MiB of output. The others are steady flows from pinned host memory, planning on the host and
// copies included, copies and kernels overlapping: `pipe` has one batch in flight, cut into 4 or 8
// parts (what is better of the two), `four` has four whole batches in flight. Decoders take turns,
// and the medians of --rounds count. Every chunk is compared with its field first; what a decoder
// refuses does not count.
//
//   gpu_decode [--resident] [--alone] [--rounds N] [CODING]…
//     all codings by default; --resident leaves the pipes out, --alone the peers

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>

#include "bench/gpu_chunks.h"
#include "bench/peers/cpu_decode.h"
#ifdef BATCHFS_NVCOMP_LIBRARY
#include "bench/peers/nvcomp.h"
#endif
#include "gpu/stream/cuda_devices.h"
#include "tests/gpu/device_decoder.h"

namespace batchfs::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

gpu::Verdict add(gpu::DecodePlan& plan, Coding coding, std::span<const std::byte> chunk,
                 std::uint64_t source, std::uint64_t target, std::uint64_t size) {
  switch (coding) {
    case Coding::zstd3:
      return plan.add_zstd(chunk, source, target, size);
    case Coding::lz4_block:
      return plan.add_lz4(chunk, source, target, size);
    case Coding::zlib4:
      return plan.add_deflate(chunk, gpu::DeflateFormat::zlib, source, target, size, sizeof(float));
    default:
      return plan.add_blosc(chunk, source, target, size);
  }
}

/// Encoded chunks, one after the other in pinned memory.
struct PinnedChunks {
  explicit PinnedChunks(const Chunks& chunks)
      : coding(chunks.coding), decoded_size(chunks.decoded_size), begins{0} {
    for (const auto& chunk : chunks.encoded) {
      sizes.push_back(chunk.size());
      begins.push_back(begins.back() + (chunk.size() + 15) / 16 * 16);
    }
    memory = std::make_unique<gpu::PinnedBuffer>(begins.back());
    for (std::size_t i = 0; i < sizes.size(); ++i)
      std::memcpy(memory->data() + begins[i], chunks.encoded[i].data(), sizes[i]);
  }

  Coding coding;
  std::size_t decoded_size;
  std::vector<std::size_t> begins, sizes;
  std::unique_ptr<gpu::PinnedBuffer> memory;
};

class OurFlight final : public Flight {
 public:
  explicit OurFlight(std::shared_ptr<const PinnedChunks> chunks)
      : chunks_(std::move(chunks)), decoder_(0, gpu::DeviceDecoder::Timing::on) {}

  void start(std::size_t first, std::size_t count) override {
    const PinnedChunks& c = *chunks_;
    plan_.clear();
    for (std::size_t i = 0; i < count; ++i)
      if (add(plan_, c.coding, {c.memory->data() + c.begins[first + i], c.sizes[first + i]},
              c.begins[first + i] - c.begins[first], i * c.decoded_size,
              c.decoded_size) != gpu::Verdict::planned)
        throw std::runtime_error("a chunk is not planned");
    plan_.finish();
    decoder_.start(plan_, c.memory->data() + c.begins[first],
                   c.begins[first + count] - c.begins[first], count * c.decoded_size);
  }
  std::size_t finish() override {
    const auto statuses = decoder_.finish();
    refused_ = statuses.size() - static_cast<std::size_t>(
                                     std::count(statuses.begin(), statuses.end(), gpu::kDecoded));
    return (statuses.size() - refused_) * chunks_->decoded_size;
  }
  double kernel_milliseconds() const override {
    const gpu::StageTimes t = decoder_.times();
    return t.lz4 + t.deflate + t.zstd_entropy + t.zstd_frames + t.unshuffle;
  }
  std::size_t refused() const override { return refused_; }
  void read(std::size_t offset, std::span<std::byte> to) const override {
    decoder_.read(offset, to);
  }

 private:
  const std::shared_ptr<const PinnedChunks> chunks_;
  gpu::DecodePlan plan_;
  gpu::DeviceDecoder decoder_;
  std::size_t refused_ = 0;
};

Decoder our_decoder(const Chunks& chunks) {
  return [pinned = std::make_shared<const PinnedChunks>(chunks)](std::size_t) {
    return std::make_unique<OurFlight>(pinned);
  };
}

constexpr double kMiB = 1 << 20;

/// The number of chunks that decode to about `bytes` bytes.
std::size_t chunks_in(const Chunks& chunks, double bytes) {
  return std::clamp<std::size_t>(
      static_cast<std::size_t>(bytes / static_cast<double>(chunks.decoded_size) + 0.5), 1,
      chunks.count());
}

/// GB/s of a steady flow with `parts` flights of `bytes` bytes of output each.
double flow(const Chunks& chunks, const Decoder& decoder, double bytes, std::size_t parts) {
  const std::size_t each = chunks_in(chunks, bytes);
  std::vector<std::unique_ptr<Flight>> flights;
  for (std::size_t i = 0; i < parts; ++i) flights.push_back(decoder(each));
  const std::size_t sets = chunks.count() / each;
  std::size_t done = 0;
  Clock::time_point begin;
  constexpr double kWarmUp = 0.05, kMeasured = 0.3;
  const Clock::time_point origin = Clock::now();
  bool warm = false;
  for (std::size_t turn = 0;; ++turn) {
    Flight& flight = *flights[turn % parts];
    if (turn >= parts) {
      const std::size_t decoded = flight.finish();
      if (warm) done += decoded;
      if (warm && seconds_since(begin) > kMeasured) break;
      if (!warm && seconds_since(origin) > kWarmUp && turn >= 3 * parts) {
        warm = true;
        begin = Clock::now();
      }
    }
    flight.start(turn % sets * each, each);
  }
  const double seconds = seconds_since(begin);
  for (std::size_t i = 0; i < parts; ++i) flights[i]->finish();
  return static_cast<double>(done) / seconds / 1e9;
}

/// GB/s of the kernels of one batch, the best of a few; 0 when there are none.
double resident(const Chunks& chunks, const Decoder& decoder, double in_flight) {
  const std::size_t count = chunks_in(chunks, in_flight);
  const std::unique_ptr<Flight> flight = decoder(count);
  double best = 0;
  for (int round = 0; round < 6; ++round) {
    flight->start(0, count);
    const std::size_t decoded = flight->finish();
    const double milliseconds = flight->kernel_milliseconds();
    if (milliseconds > 0) best = std::max(best, static_cast<double>(decoded) / milliseconds / 1e6);
  }
  return best;
}

/// Outcome of all chunks: "right", how many streams were refused, or "WRONG".
std::string compared(const Chunks& chunks, const Decoder& decoder) {
  const std::unique_ptr<Flight> flight = decoder(chunks.count());
  flight->start(0, chunks.count());
  flight->finish();
  if (flight->refused() > 0) return std::to_string(flight->refused()) + " refused";
  std::vector<std::byte> decoded(chunks.decoded_size);
  for (std::size_t i = 0; i < chunks.count(); ++i) {
    flight->read(i * chunks.decoded_size, decoded);
    if (std::memcmp(decoded.data(), chunks.fields[i].data(), decoded.size()) != 0) return "WRONG";
  }
  return "right";
}

struct Contender {
  std::string name;
  std::function<Decoder(const Chunks&)> decoder;
};

struct Case {
  Field field;
  Coding coding;
  std::size_t steps;
};

struct Arguments {
  std::vector<std::string_view> codings;
  bool pipes = true, peers = true;
  int rounds = 3;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

/// Measured rates of a contender, for 64 and 256 MiB.
struct Rates {
  std::vector<double> resident[2], quarters[2], eighths[2], four[2];

  double piped(int size) const { return std::max(median(quarters[size]), median(eighths[size])); }
};

/// Lines of the table: one per contender. True when no decoded byte was wrong.
bool measure(const Case& c, const std::vector<Contender>& contenders, const Arguments& arguments) {
  constexpr double kSizes[] = {64 * kMiB, 256 * kMiB};
  const Chunks chunks(c.field, c.coding, c.steps, 80 / c.steps);
  std::vector<Decoder> decoders;
  std::vector<std::string> found;
  for (const Contender& contender : contenders) {
    decoders.push_back(contender.decoder(chunks));
    found.push_back(compared(chunks, decoders.back()));
  }
  std::vector<Rates> rates(contenders.size());
  for (int round = 0; round < arguments.rounds; ++round)
    for (std::size_t i = 0; i < contenders.size(); ++i)
      for (int size = 0; size < 2; ++size) {
        const double bytes = kSizes[size];
        rates[i].resident[size].push_back(resident(chunks, decoders[i], bytes));
        if (!arguments.pipes) continue;
        rates[i].quarters[size].push_back(flow(chunks, decoders[i], bytes / 4, 4));
        rates[i].eighths[size].push_back(flow(chunks, decoders[i], bytes / 8, 8));
        rates[i].four[size].push_back(flow(chunks, decoders[i], bytes, 4));
      }
  bool right = true;
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    const Rates &mine = rates[i], &ours = rates[0];
    std::printf("%-7s %-10s %6.2fMB %5.2f %-8s | %6.1f %6.1f | %6.1f %6.1f | %6.1f %6.1f |",
                c.field == Field::grib16 ? "grib16" : "smooth", name_of(c.coding),
                static_cast<double>(chunks.decoded_size) / 1e6, chunks.ratio(),
                contenders[i].name.c_str(), median(mine.resident[0]), median(mine.resident[1]),
                mine.piped(0), mine.piped(1), median(mine.four[0]), median(mine.four[1]));
    if (i > 0 && arguments.pipes)
      std::printf(" %5.2f %5.2f %5.2f %5.2f |", ours.piped(0) / mine.piped(0),
                  ours.piped(1) / mine.piped(1), median(ours.four[0]) / median(mine.four[0]),
                  median(ours.four[1]) / median(mine.four[1]));
    else
      std::printf(" %23s |", "");
    std::printf(" %s\n", found[i].c_str());
    right = right && found[i] != "WRONG" && (i > 0 || found[i] == "right");
  }
  std::fflush(stdout);
  return right;
}

int run(const Arguments& arguments) {
  if (const std::string why = gpu::why_no_device(); !why.empty()) {
    std::printf("no GPU to measure: %s\n", why.c_str());
    return 0;
  }
  std::vector<Contender> contenders{{"batchfs", our_decoder}};
  std::string without = "this was built without its headers (bench/dependencies --gpu)";
  if (arguments.peers) {
#ifdef BATCHFS_NVCOMP_LIBRARY
    without = why_no_nvcomp();
    if (without.empty()) contenders.push_back({"nvCOMP", nvcomp_decoder});
#endif
    if (!without.empty()) std::printf("no nvCOMP: %s\n", without.c_str());
    contenders.push_back({"CPU", cpu_decoder});
  }
  std::printf("%s; %u cores; GB/s of decoded float32, 64 and 256 MiB of output\n",
              gpu::device_name(0).c_str(), std::thread::hardware_concurrency());
  std::printf("%-7s %-10s %8s %5s %-8s | %-13s | %-13s | %-13s | %-23s | bytes\n", "data", "coding",
              "chunk", "ratio", "decoder", "resident", "pipe", "four", "batchfs: x pipe, x four");
  const Case cases[] = {
      {Field::grib16, Coding::blosc_lz4, 1},  {Field::grib16, Coding::blosc_zstd, 1},
      {Field::grib16, Coding::zstd3, 1},      {Field::grib16, Coding::zstd3, 5},
      {Field::grib16, Coding::lz4_block, 1},  {Field::grib16, Coding::zlib4, 1},
      {Field::grib16, Coding::zlib4, 5},      {Field::smooth, Coding::blosc_lz4, 1},
      {Field::smooth, Coding::blosc_zstd, 1}, {Field::smooth, Coding::zstd3, 1},
      {Field::smooth, Coding::zlib4, 1}};
  bool right = true;
  for (const Case& c : cases) {
    const auto& wanted = arguments.codings;
    if (wanted.empty() ||
        std::find(wanted.begin(), wanted.end(), name_of(c.coding)) != wanted.end())
      right = measure(c, contenders, arguments) && right;
  }
  return right ? 0 : 1;
}

}  // namespace
}  // namespace batchfs::bench

int main(int argc, char** argv) {
  batchfs::bench::Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--resident")
      arguments.pipes = false;
    else if (argument == "--alone")
      arguments.peers = false;
    else if (argument == "--rounds" && i + 1 < argc)
      arguments.rounds = std::max(1, std::atoi(argv[++i]));
    else
      arguments.codings.push_back(argument);
  }
  try {
    return batchfs::bench::run(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_decode: %s\n", error.what());
    return 1;
  }
}
