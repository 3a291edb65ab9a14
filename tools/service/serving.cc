#include "tools/service/serving.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <set>

#include <sys/resource.h>
#include <unistd.h>

#include <fmt/format.h>

#include "engine/base/limits.h"
#include "engine/base/printable.h"
#include "engine/base/strings.h"
#include "engine/pipeline/engine_errors.h"
#include "engine/store/place.h"
#include "engine/view/plan/batch_planner.h"
#include "engine/view/plan/operand_memory.h"
#include "engine/view/samples/duration.h"
#include "engine/view/view_limits.h"
#include "fs/formats/formats.h"
#include "gpu/handoff/batch_slots.h"
#include "gpu/stream/cuda_devices.h"
#include "tools/cli/view_memory.h"
#include "tools/planning/advice.h"

namespace batchfs {

std::string absolute_store(const std::string& store) {
  const auto [kind, place] = split_kind(usual_place(store));
  if (place.empty() || place.find("://") != std::string::npos) return kind + place;
  return kind + std::filesystem::absolute(place).lexically_normal().string();
}

std::vector<std::shared_ptr<const View>> load_views(GroupDatasets& datasets,
                                                    const std::vector<std::string>& files,
                                                    const CheckFile& check_file,
                                                    const std::optional<StandardInput>& input) {
  std::vector<std::shared_ptr<const View>> views;
  std::set<std::string> names;
  HeldByViews held;
  for (const std::string& file : files) {
    for (auto& view : load_parts(datasets, file, check_file, input)) {
      if (!names.insert(view->name()).second)
        throw Error(ErrorCode::invalid_argument,
                    "two views have the name '" + view->name() + "'; give one another \"name\"",
                    file);
      held.add(*view);
      const std::uint64_t bytes = held.bytes(), limit = view->dataset()->memory_limit();
      if (bytes > max_lists(limit))
        throw Error(ErrorCode::no_memory,
                    fmt::format("labels and samples of the views up to '{}' take {} of memory, and "
                                "they get {} of {}; give more with --memory",
                                view->name(), format_size(bytes), format_size(max_lists(limit)),
                                format_size(limit)),
                    file);
      views.push_back(std::move(view));
    }
  }
  return views;
}

std::shared_ptr<const Dataset> described_dataset(const OpenedStore& opened, GroupDatasets& datasets,
                                                 Log& log) {
  try {
    return datasets.chosen();
  } catch (const Error& error) {
    log.warning(std::string("the arrays do not form a dataset, so views are not possible: ") +
                error.what());
    return std::make_shared<const Dataset>(opened.store, Hierarchy{});
  }
}

namespace {

/// `bytes`: of the first batch, in memory.
void check_memory(const View& view, std::uint64_t bytes, std::uint64_t budget) try {
  if (view.batches() > 0) check_batch_memory(bytes, operand_memory(view, 0), budget);
} catch (Error& error) {
  throw error.at("view " + view.name());
}

std::size_t parts_of(const View& view, const std::vector<std::int64_t>& samples, PlanLimit limit) {
  std::vector<std::int64_t> places(samples.size());
  std::iota(places.begin(), places.end(), 0);
  return plan_samples(view, samples, places, limit).parts.size();
}

/// Parts of the first rows of the first batch. Precondition: each row is a sample.
std::size_t parts_of_few(const View& view, PlanLimit limit) {
  const std::vector<std::int64_t> samples = view.samples_in(0, 0, {0, kRowsAtATime});
  if (view.components().empty()) return parts_of(view, samples, limit);
  std::size_t parts = 0;
  std::int64_t first = 0;  // number of the component's first sample
  for (const auto& component : view.components()) {
    std::vector<std::int64_t> own;
    for (const std::int64_t sample : samples)
      if (sample >= first && sample - first < component->samples()) own.push_back(sample - first);
    if (!own.empty()) parts += parts_of(*component, own, limit);
    first += component->samples();
  }
  return parts;
}

/// Whether the first rows of the first batch show that the list of all its parts is short enough.
bool has_short_list(const View& view, std::int64_t rows, PlanLimit limit) try {
  if (view.sample_count(0) != rows) return false;  // those of xbatcher have several rows
  const double bytes = static_cast<double>(parts_of_few(view, limit) * sizeof(Part));
  return bytes * static_cast<double>(rows) <= static_cast<double>(limit.bytes * kRowsAtATime);
} catch (const Error& error) {
  if (error.code() != ErrorCode::no_memory) throw;
  return false;
}

/// Throws no_memory where the list of the parts of the first batch is longer than one may be. Looks
/// at few rows, and at the others where those have many parts.
void check_list_of_parts(const View& view, std::uint64_t budget) try {
  const std::int64_t rows = view.batches() > 0 ? view.row_count(0) : 0;
  const PlanLimit limit{max_parts(budget)};
  if (rows <= kRowsAtATime) {
    if (rows > 0) view.plan(0, 0, limit);
    return;
  }
  if (!has_short_list(view, rows, limit)) view.plan(0, 0, limit);  // whose error names the batch
} catch (Error& error) {
  throw error.at("view " + view.name());
}

}  // namespace

void check_files(const std::vector<std::shared_ptr<const View>>& views, const MemoryFiles& files,
                 std::uint64_t budget) {
  for (const auto& view : views) {
    check_formats(*view);
    check_memory(*view, batch_memory(*view, files), budget);
    check_list_of_parts(*view, budget);
  }
}

void check_handed_over(const std::vector<std::shared_ptr<const View>>& views,
                       const handoff::Delivery& host) {
  for (const auto& view : views)
    if (view->batches() > 0) {
      check_memory(*view, host.bytes(*view, 0), host.limit());
      check_list_of_parts(*view, host.limit());
    }
}

void warn_of_memory(const std::vector<std::shared_ptr<const View>>& views, std::uint64_t budget,
                    Log& log) {
  for (const auto& view : views)
    if (const auto line = memory_advice(memory_need(*view), budget))
      log.warning("view " + view->name() + ": " + *line);
}

void warn_of_samples(const std::vector<std::shared_ptr<const View>>& views, Log& log) {
  for (const auto& view : views)
    for (const std::string& line : view_warnings(*view))
      log.warning("view " + view->name() + ": " + line);
}

bool is_stderr_read(bool foreground) {
  return foreground || is_journal(STDERR_FILENO, std::getenv("JOURNAL_STREAM"));
}

void add_time_options(CLI::App& app, TimeOptions& options) {
  app.add_option("--wait", options.wait,
                 "a reader that has waited this long for its data gets an error (default 600)")
      ->check(CLI::Range(0.001, 1e6).description(""))
      ->type_name("SECONDS");
  app.add_option("--idle", options.idle,
                 "release cached memory after SECONDS without a file being opened (default 300)")
      ->check(CLI::Range(0.001, 1e6).description(""))
      ->type_name("SECONDS");
}

void add_refresh_option(CLI::App& app, TimeOptions& options) {
  constexpr double kNanosecond = 1e-9;
  app.add_option_function<std::string>(
         "--refresh",
         [&options](const std::string& text) {
           const auto duration = parse_duration(text);
           const double seconds = duration && duration->months == 0
                                      ? static_cast<double>(duration->nanoseconds) * kNanosecond
                                      : 0;
           if (seconds < 1)
             throw CLI::ValidationError(
                 "--refresh", "'" + text + "' is not a time of a second or more, as 30s, 10m, 1h");
           options.refresh = seconds;
         },
         "read the store again this often (30s, 10m, 1h; default: when `batchfs refresh` asks)")
      ->type_name("TIME");
}

void raise_file_limit() {
  rlimit limit;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);  // on failure the limit stays
}

void add_gpu_options(CLI::App& app, GpuOptions& options) {
  app.add_option("--gpu", options.gpu,
                 "make batches in GPU memory for readers that request it: auto, off, or the number "
                 "of one GPU")
      ->type_name("auto|off|N")
      ->check([](const std::string& text) {
        int number = 0;
        const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        const bool is_number =
            error == std::errc() && stop == text.data() + text.size() && number >= 0;
        return text == "auto" || text == "off" || is_number
                   ? ""
                   : "it is auto, off or the number of a GPU, not '" + text + "'";
      });
  add_size_option(app, "--gpu-memory,--gpu_memory", options.memory,
                  "use at most this much memory of each GPU (default: a quarter, at most 24G)");
}

GpuDeliveries::GpuDeliveries(const GpuOptions& options, Engine& engine, handoff::Delivery& host,
                             Log& log)
    : readers_(engine, host, log) {
  constexpr std::uint64_t kMaxByDefault = std::uint64_t{24} << 30;
  if (options.gpu == "off") return;
  const int wanted = options.gpu == "auto" ? -1 : std::stoi(options.gpu);
  if (const std::string why = gpu::why_no_device(); !why.empty()) {
    if (wanted >= 0)
      throw Error(ErrorCode::not_supported, "there is no GPU: " + why + "; leave --gpu out");
    log.debug("no batches are made on a GPU: " + why);
    return;
  }
  if (wanted >= gpu::device_count())
    throw Error(ErrorCode::not_supported, "there is no GPU " + options.gpu + "; there are " +
                                              std::to_string(gpu::device_count()));
  for (int number = std::max(wanted, 0); number < (wanted >= 0 ? wanted + 1 : gpu::device_count());
       ++number) {
    if (const std::string why = gpu::why_no_kernel_for(number); !why.empty()) {
      const std::string text =
          fmt::format("GPU {} ({}) is {}", number, printable(gpu::device_name(number)), why);
      if (wanted >= 0) throw Error(ErrorCode::not_supported, text + "; leave --gpu out");
      log.warning(text + ": its batches are made on the processors");
      unsupported_.push_back({gpu::device_uuid(number), why});
      continue;
    }
    Gpu gpu{number, gpu::device_name(number), options.memory, nullptr};
    if (gpu.memory == 0) gpu.memory = std::min(gpu::total_device_memory(number) / 4, kMaxByDefault);
    gpu.delivery = std::make_unique<handoff::DeviceDelivery>(
        handoff::DeviceDelivery::Options{
            .uuid = gpu::device_uuid(number),
            .memory = gpu.memory,
            .make_stream =
                [&engine, number](const BatchRequest& first, std::uint64_t memory) {
                  return handoff::batch_slots(engine, number, first, memory);
                },
            .workers = &engine.executor(),
            .timers = &readers_.timers()},
        host, engine.counters(), log);
    gpus_.push_back(std::move(gpu));
  }
}

std::vector<handoff::Delivery*> GpuDeliveries::before(handoff::Delivery& host) const {
  std::vector<handoff::Delivery*> deliveries{const_cast<handoff::ReaderDelivery*>(&readers_)};
  for (const Gpu& gpu : gpus_) deliveries.push_back(gpu.delivery.get());
  deliveries.push_back(&host);
  return deliveries;
}

namespace {

Json fallbacks_json(const handoff::FallbackLog::Counts& counts) {
  Json json = Json::object();
  for (std::size_t i = 1; i < counts.size(); ++i) json[handoff::FallbackLog::kNames[i]] = counts[i];
  return json;
}

}  // namespace

Json GpuDeliveries::json() const {
  Json list = Json::array();
  for (const Gpu& gpu : gpus_) {
    const auto now = gpu.delivery->statistics();
    list.push_back({{"gpu", gpu.number},
                    {"name", gpu.name},
                    {"batches", now.batches},
                    {"bytes", now.bytes},
                    {"memory_used", now.memory},
                    {"memory_limit", gpu.memory},
                    {"streams", now.feeds},
                    {"from_host", fallbacks_json(now.fallbacks)}});
  }
  return list;
}

Json GpuDeliveries::readers_json() const {
  const auto now = readers_.statistics();
  return {{"readers", now.readers},
          {"batches", now.batches},
          {"bytes", now.bytes},
          {"from_host", fallbacks_json(now.fallbacks)}};
}

Json handoff_json(const handoff::HandoffServer& server, const GpuDeliveries& gpus) {
  const auto now = server.statistics();
  return {{"socket", server.path()},
          {"readers", now.readers},
          {"leases", now.leases},
          {"memory_bytes", now.bytes},
          {"batches", now.delivered},
          {"gpus", gpus.json()},
          {"decoding_readers", gpus.readers_json()}};
}

}  // namespace batchfs
