// bench/gpu_batches: batches of 16 pairs (x, and y a step later; six variables of 640 x 1280
// float32, a step a chunk) from a local store in the page cache to device memory, GB/s.
//
//   gpu_batches FOLDER [--steps N] [--seconds S] [--memory MiB] [--slots N] [--threads N]
//   [--staging MiB] [CODING]…
//                                                      raw, blosc-lz4, blosc-zstd, zstd-3 and
//                                                      zlib-4 by default
//
// The stores are made in FOLDER, once. `delivered` counts the bytes of the batches, `chunks` those
// of the chunks that were read for them, decoded (in order, x and y share all steps but one, so it
// is about half), `stored` their compressed bytes, `cores` the processor time. Device memory for
// decoded chunks is smaller than the data, so every pass reads all of it again. A few batches are
// compared with the engine's first. `by` engine: assembled by the engine on the CPU, and copied.

#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "bench/gpu_fields.h"
#include "engine/base/buffer_pool.h"
#include "engine/dataset/dataset.h"
#include "engine/zarr/hierarchy.h"
#include "gpu/stream/batch_stream.h"
#include "gpu/stream/cuda_devices.h"

namespace batchfs {
namespace {

using Clock = std::chrono::steady_clock;
constexpr const char* kVariables[] = {"t", "u", "v", "q", "z", "w"};
constexpr std::uint64_t kMiB = 1 << 20;

/// Seconds of all cores that this process has had.
double cpu_seconds() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(use.ru_utime) + seconds(use.ru_stime);
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

Json compressor_of(std::string_view coding) {
  if (coding == "zstd-3") return {{"id", "zstd"}, {"level", 3}};
  if (coding == "zlib-4") return {{"id", "zlib"}, {"level", 4}};
  if (coding.starts_with("blosc-"))
    return {{"id", "blosc"},
            {"cname", std::string(coding.substr(6))},
            {"clevel", 5},
            {"shuffle", 1},
            {"blocksize", 0}};
  return nullptr;
}

Json filters_of(std::string_view coding) {
  if (coding == "zlib-4") return {{{"id", "shuffle"}, {"elementsize", sizeof(float)}}};
  return nullptr;
}

std::vector<std::byte> chunk_of(std::string_view coding, const std::vector<float>& field) {
  if (coding == "zstd-3") return bench::encoded(bench::Coding::zstd3, field);
  if (coding == "blosc-lz4") return bench::encoded(bench::Coding::blosc_lz4, field);
  if (coding == "zlib-4") return bench::encoded(bench::Coding::zlib4, field);
  if (coding == "blosc-zstd") return bench::encoded(bench::Coding::blosc_zstd, field);
  const auto bytes = std::as_bytes(std::span(field));
  return {bytes.begin(), bytes.end()};
}

void write(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  if (!file.good()) throw std::runtime_error("cannot write " + path.string());
}

void write_json(const std::filesystem::path& path, const Json& json) {
  const std::string text = json.dump();
  write(path, std::as_bytes(std::span(text)));
}

void make_stores(const std::filesystem::path& folder, const std::vector<std::string_view>& codings,
                 std::size_t steps) {
  for (const std::string_view coding : codings) {
    const std::filesystem::path root = folder / coding;
    for (const char* variable : kVariables) {
      std::filesystem::create_directories(root / variable);
      write_json(root / variable / ".zattrs",
                 Json{{"_ARRAY_DIMENSIONS", {"time", "latitude", "longitude"}}});
      write_json(root / variable / ".zarray",
                 Json{{"zarr_format", 2},
                      {"shape", {steps, bench::kRows, bench::kColumns}},
                      {"chunks", {1, bench::kRows, bench::kColumns}},
                      {"dtype", "<f4"},
                      {"compressor", compressor_of(coding)},
                      {"fill_value", nullptr},
                      {"order", "C"},
                      {"filters", filters_of(coding)},
                      {"dimension_separator", "."}});
    }
    write_json(root / ".zgroup", Json{{"zarr_format", 2}});
  }
  bench::on_all_cores(steps * std::size(kVariables), [&](std::size_t i) {
    const std::string key = std::string(kVariables[i % std::size(kVariables)]) + "/" +
                            std::to_string(i / std::size(kVariables)) + ".0.0";
    std::vector<float> field;
    for (const std::string_view coding : codings) {
      if (std::filesystem::exists(folder / coding / key)) continue;
      if (field.empty()) field = bench::make_field(bench::Field::grib16, static_cast<unsigned>(i));
      write(folder / coding / key, chunk_of(coding, field));
    }
  });
}

std::string view_of(bool shuffled) {
  Json variables = Json::array();
  for (const char* variable : kVariables) variables.push_back(variable);
  const Json dims = {"channel", "latitude", "longitude"};
  return Json{{"window", {{"time", 1}}},
              {"batch", {{"size", 16}, {"remainder", "drop"}}},
              {"order", {{"shuffle", shuffled ? "global" : "none"}, {"seed", 0}}},
              {"epochs", 1000000},
              {"tensors",
               {{"x", {{"variables", variables}, {"stack", "channel"}, {"dims", dims}}},
                {"y",
                 {{"variables", variables},
                  {"stack", "channel"},
                  {"dims", dims},
                  {"offsets", {{"time", {1}}}}}}}}}
      .dump();
}

/// Reads all tensors of a batch and compares them with the engine's.
bool is_right(const gpu::BatchStream& stream, const gpu::DeviceBatch& batch,
              gpu::BatchStream& engines) {
  const auto expected = engines.next();
  bool same = true;
  for (std::size_t t = 0; t < batch.tensors.size(); ++t) {
    const auto size =
        static_cast<std::size_t>(element_count(batch.tensors[t].shape)) * sizeof(float);
    std::vector<std::byte> got(size), wanted(size);
    stream.read(batch.tensors[t], got);
    engines.read(expected->tensors[t], wanted);
    same = same && got == wanted;
  }
  engines.release(*expected);
  return same;
}

struct Rates {
  double delivered = 0, chunks = 0, stored = 0, decoded_per_batch = 0, cores = 0, first_ms = 0;
  std::uint64_t from_cpu = 0;
};

Rates measure(const std::shared_ptr<const View>& view, Engine& engine,
              const gpu::BatchStream::Options& options, double seconds) {
  const Clock::time_point origin = Clock::now();
  gpu::BatchStream stream(view, engine, options);
  Rates rates;
  Clock::time_point begin = origin;
  std::uint64_t delivered = 0, decoded = 0, staged = 0, batches = 0;
  double cpu = 0;
  const gpu::StreamCounters& counters = stream.counters();
  const std::uint64_t warm = options.by_engine ? 2 : 6;
  for (std::uint64_t i = 0;; ++i) {
    if (i == warm) {
      begin = Clock::now();
      cpu = cpu_seconds();
      delivered = counters.bytes_delivered;
      decoded = counters.bytes_decoded;
      staged = counters.bytes_staged;
      batches = counters.chunks_on_gpu + counters.chunks_on_cpu;
    }
    const auto batch = stream.next();
    if (i == 0) rates.first_ms = seconds_since(origin) * 1e3;
    stream.release(*batch);
    if (i <= warm + 1 || seconds_since(begin) < seconds) continue;
    const double passed = seconds_since(begin) * 1e9;
    const auto n = static_cast<double>(i + 1 - warm);
    rates.delivered = static_cast<double>(counters.bytes_delivered - delivered) / passed;
    rates.chunks = static_cast<double>(counters.bytes_decoded - decoded) / passed;
    rates.stored = static_cast<double>(counters.bytes_staged - staged) / passed;
    rates.decoded_per_batch =
        static_cast<double>(counters.chunks_on_gpu + counters.chunks_on_cpu - batches) / n;
    rates.cores = (cpu_seconds() - cpu) * 1e9 / passed;
    rates.from_cpu = counters.batches_on_cpu;
    return rates;
  }
}

int run(const std::filesystem::path& folder, std::vector<std::string_view> codings,
        std::size_t steps, double seconds, const gpu::BatchStream::Options& wanted) {
  if (const std::string why = gpu::why_no_device(); !why.empty()) {
    std::printf("no GPU to measure: %s\n", why.c_str());
    return 0;
  }
  const Clock::time_point origin = Clock::now();
  make_stores(folder, codings, steps);
  std::printf("%s; stores of %zu steps made in %.1f s\n", gpu::device_name(0).c_str(), steps,
              seconds_since(origin));
  std::printf("%-10s %-9s %-7s %9s %7s %7s %12s %6s %9s\n", "coding", "order", "by", "delivered",
              "chunks", "stored", "chunks/batch", "cores", "first ms");
  int wrong = 0;
  Log log;
  for (const std::string_view coding : codings) {
    const auto store = open_store((folder / coding).string());
    const auto dataset = std::make_shared<const Dataset>(store, open_hierarchy(*store));
    for (const bool shuffled : {false, true}) {
      const auto view = View::parse(dataset, view_of(shuffled), "pairs", "bench");
      Engine engine({.memory = std::uint64_t{16} << 30}, log);
      keep_pooled(512 << 20);  // as the commands do
      gpu::BatchStream::Options options = wanted;
      if (!shuffled) {
        gpu::BatchStream stream(view, engine, options);
        gpu::BatchStream::Options by_engine = options;
        by_engine.by_engine = true;
        gpu::BatchStream engines(view, engine, by_engine);
        for (int i = 0; i < 3; ++i) {
          const auto batch = stream.next();
          if (!is_right(stream, *batch, engines)) {
            std::printf("WRONG: %.*s batch %d\n", static_cast<int>(coding.size()), coding.data(),
                        i);
            ++wrong;
          }
          stream.release(*batch);
        }
      }
      for (const bool by_engine : {false, true}) {
        options.by_engine = by_engine;
        const Rates rates = measure(view, engine, options, seconds);
        std::printf("%-10.*s %-9s %-7s %9.1f %7.1f %7.1f %12.1f %6.1f %9.0f%s\n",
                    static_cast<int>(coding.size()), coding.data(),
                    shuffled ? "shuffled" : "in order", by_engine ? "engine" : "GPU",
                    rates.delivered, rates.chunks, rates.stored, rates.decoded_per_batch,
                    rates.cores, rates.first_ms,
                    !by_engine && rates.from_cpu > 0 ? " (some by the engine)" : "");
        std::fflush(stdout);
      }
    }
  }
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace batchfs

int main(int argc, char** argv) {
  std::vector<std::string_view> codings;
  std::size_t steps = 513;
  double seconds = 1.5;
  batchfs::gpu::BatchStream::Options options;
  options.memory = 6000 * batchfs::kMiB;
  for (int i = 2; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--steps" && i + 1 < argc)
      steps = std::stoul(argv[++i]);
    else if (argument == "--memory" && i + 1 < argc)
      options.memory = std::stoul(argv[++i]) * batchfs::kMiB;
    else if (argument == "--slots" && i + 1 < argc)
      options.slots = static_cast<std::uint32_t>(std::stoul(argv[++i]));
    else if (argument == "--threads" && i + 1 < argc)
      options.threads = std::stoi(argv[++i]);
    else if (argument == "--staging" && i + 1 < argc)
      options.staging = std::stoul(argv[++i]) * batchfs::kMiB;
    else if (argument == "--seconds" && i + 1 < argc)
      seconds = std::stod(argv[++i]);
    else
      codings.push_back(argument);
  }
  if (argc < 2) {
    std::fprintf(stderr,
                 "usage: gpu_batches FOLDER [--steps N] [--seconds S] [--memory MiB] [--slots N] "
                 "[--threads N] [--staging MiB] [CODING]...\n");
    return 2;
  }
  if (codings.empty()) codings = {"raw", "blosc-lz4", "blosc-zstd", "zstd-3", "zlib-4"};
  try {
    return batchfs::run(argv[1], codings, steps, seconds, options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_batches: %s\n", error.what());
    return 1;
  }
}
