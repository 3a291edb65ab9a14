// batchfs warm: fetches the chunks of a view into the local cache, before they are needed.

#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>
#include <unordered_set>

#include <fmt/format.h>

#include "engine/base/budget.h"
#include "engine/base/counted.h"
#include "engine/base/json_text.h"
#include "engine/base/log.h"
#include "engine/base/strings.h"
#include "engine/pipeline/engine.h"
#include "engine/scan/source_versions.h"
#include "engine/store/fingerprint.h"
#include "engine/store/output/output_store.h"
#include "engine/view/describe/resolved.h"
#include "engine/view/plan/batch_chunks.h"
#include "engine/view/spec.h"
#include "engine/write/run_identity.h"
#include "tools/cli/command.h"
#include "tools/cli/places.h"
#include "tools/cli/progress.h"
#include "tools/cli/samples.h"
#include "tools/cli/text.h"
#include "tools/cli/view_memory.h"
#include "tools/cli/view_options.h"
#include "tools/tasks/task_run.h"

namespace batchfs {

namespace {

struct WarmOptions {
  StoreOptions store;
  std::optional<std::string> part;
  std::string view;
  TaskRunOptions run;
};

constexpr int kInFlight = 128;  // the store limits the number on the network

struct WantedChunk {
  const Array* array;
  std::int64_t chunk;
};

/// The distinct chunks of the view's batches, each array's in the order they are stored.
std::vector<WantedChunk> chunks_of(const View& view) {
  const Json resolved = resolved_view(view);
  const auto batch = resolved.find("batch");
  const bool drops = batch != resolved.end() && batch->is_object() &&
                     batch->value("remainder", "") == "drop" &&
                     view.epoch_samples() % view.batch_size() != 0;
  // Without a dropped rest every epoch has all samples; the next one in another order. An epoch of
  // a mixture may have any part of them.
  const std::int64_t of_pass = (view.samples() - 1) / view.epoch_samples() + 1;
  const std::int64_t epochs = drops || !view.components().empty()
                                  ? view.spec().epochs
                                  : std::min(view.spec().epochs, of_pass);
  std::vector<std::unordered_set<std::int64_t>> wanted(view.variables().size());
  Progress progress("planning");
  for (std::int64_t e = 0; e < epochs; ++e) {
    for (std::int64_t b = 0; b < view.batches(); ++b) {
      for_each_chunk(view, e, b, [&](std::uint32_t variable, std::int64_t chunk) {
        wanted[variable].insert(chunk);
      });
      progress.show(e * view.batches() + b, epochs * view.batches());
    }
  }
  std::vector<WantedChunk> chunks;
  for (std::size_t v = 0; v < wanted.size(); ++v) {
    if (view.variables()[v]->array->store().is_local()) continue;  // a further store
    std::vector<std::int64_t> sorted(wanted[v].begin(), wanted[v].end());
    std::sort(sorted.begin(), sorted.end());
    for (const std::int64_t chunk : sorted)
      chunks.push_back({view.variables()[v]->array.get(), chunk});
  }
  return chunks;
}

/// Where the share of a task begins.
std::ptrdiff_t chunks_border(std::size_t chunks, int task, int tasks) {
  return static_cast<std::ptrdiff_t>(static_cast<unsigned __int128>(chunks) *
                                     static_cast<unsigned>(task) / static_cast<unsigned>(tasks));
}

/// Fetches chunks, many at a time, as far as memory goes.
class Fetching {
 public:
  explicit Fetching(std::uint64_t memory) : memory_(memory) {}
  ~Fetching() { wait(); }

  void start(const WantedChunk& wanted) {
    const std::uint64_t bytes = wanted.array->chunk_bytes();
    {
      std::unique_lock lock(mutex_);
      // A single chunk may be larger than the given memory.
      ended_.wait(lock, [&] {
        return in_flight_ == 0 || (in_flight_ < kInFlight && reserved_ + bytes <= memory_);
      });
      ++in_flight_;
      reserved_ += bytes;
    }
    wanted.array->fetch(wanted.array->grid().chunk(wanted.chunk),
                        whole_box(wanted.array->grid().chunk_shape()),
                        [this, bytes](std::variant<EncodedChunk, std::exception_ptr> outcome) {
                          end(bytes, std::move(outcome));
                        });
  }

  void wait() {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return in_flight_ == 0; });
  }

  std::int64_t done() {
    const std::lock_guard lock(mutex_);
    return done_;
  }

  struct Result {
    std::uint64_t missing = 0, bytes = 0, failed = 0;
    std::exception_ptr failure;  // the first
  };
  Result result() {
    const std::lock_guard lock(mutex_);
    return result_;
  }

 private:
  void end(std::uint64_t reserved, std::variant<EncodedChunk, std::exception_ptr> outcome) {
    const std::lock_guard lock(mutex_);
    if (const auto* error = std::get_if<std::exception_ptr>(&outcome)) {
      if (result_.failed++ == 0) result_.failure = *error;
    } else {
      const EncodedChunk& chunk = std::get<EncodedChunk>(outcome);
      if (chunk.missing) ++result_.missing;
      result_.bytes += chunk.bytes.size();
    }
    ++done_;
    --in_flight_;
    reserved_ -= reserved;
    ended_.notify_all();
  }

  const std::uint64_t memory_;
  std::mutex mutex_;
  std::condition_variable ended_;
  int in_flight_ = 0;
  std::uint64_t reserved_ = 0;
  std::int64_t done_ = 0;
  Result result_;
};

using Stores = std::vector<std::shared_ptr<Store>>;

/// The sum of a counter over all stores.
std::uint64_t counter(const Stores& stores, const std::string& name) {
  std::uint64_t sum = 0;
  for (const auto& store : stores)
    for (const Store::Counter& each : store->counters())
      if (each.name == name) sum += each.value;
  return sum;
}

/// Is `store` on this machine, or read through shared caches?
bool needs_no_folder(const Store& store) {
  const auto counters = store.counters();
  return store.is_local() || std::any_of(counters.begin(), counters.end(), [](const auto& each) {
           return each.name == "via_requests";
         });
}

struct Warmed {
  std::uint64_t chunks = 0, missing_chunks = 0, bytes = 0, written_bytes = 0, evicted = 0;
  std::uint64_t via_requests = 0, via_hits = 0, via_misses = 0;  // 0 without shared caches
};

constexpr std::array<std::pair<const char*, std::uint64_t Warmed::*>, 8> kWarmed = {{
    {"chunks", &Warmed::chunks},
    {"missing_chunks", &Warmed::missing_chunks},
    {"bytes", &Warmed::bytes},
    {"written_bytes", &Warmed::written_bytes},
    {"evicted", &Warmed::evicted},
    {"via_requests", &Warmed::via_requests},
    {"via_hits", &Warmed::via_hits},
    {"via_misses", &Warmed::via_misses},
}};

/// The last warning of a store. Thread-safe.
class LastWarning {
 public:
  void set(const std::string& line) {
    const std::lock_guard lock(mutex_);
    line_ = line;
  }
  std::string get() const {
    const std::lock_guard lock(mutex_);
    return line_;
  }

 private:
  mutable std::mutex mutex_;
  std::string line_;  // guarded by mutex_
};

/// Throws io when shared caches did not answer for chunks that exist: they may not have them now.
void check_shared_caches(const Stores& stores, std::uint64_t missing, const std::string& warning) {
  const std::uint64_t fallbacks = counter(stores, "via_fallbacks");
  // For a missing chunk the store was asked, since no cache has it.
  if (fallbacks <= missing) return;
  throw Error(ErrorCode::io,
              fmt::format("{} were answered by the store instead of the shared caches{}; "
                          "`batchfs doctor` with the same --via says why",
                          counted(static_cast<std::int64_t>(fallbacks - missing), "read"),
                          warning.empty() ? "" : fmt::format(" ({})", warning)),
              "--via");
}

/// Fetches the share of a task.
Warmed fetch_view(const OpenedView& opened, const StoreOptions& with, const TaskOptions& task,
                  const LastWarning& warning) {
  const Store& store = *opened.opened.store;
  const Stores stores = opened.opened.stores();
  if (std::all_of(stores.begin(), stores.end(), [](const auto& each) { return each->is_local(); }))
    throw Error(ErrorCode::invalid_argument,
                "the store is on this machine, there is nothing to fetch", store.url());

  Log log;
  Engine engine({.threads = with.threads,
                 .memory = with.memory,
                 .prefetch = false,
                 .held = held_memory(opened.opened, {opened.view})},
                log);
  const std::shared_ptr<const View> view =
      find_samples(opened.view, opened.opened, with, engine, log);
  std::vector<WantedChunk> chunks = chunks_of(*view);
  const auto border = [all = chunks.size(), &task](int number) {
    return chunks_border(all, number, task.tasks);
  };
  chunks = {chunks.begin() + border(task.task), chunks.begin() + border(task.task + 1)};
  Fetching fetching((with.memory != 0 ? with.memory : default_memory_budget()) / 2);
  {
    Progress progress("fetching");
    for (const WantedChunk& chunk : chunks) {
      fetching.start(chunk);
      progress.show(fetching.done(), static_cast<std::int64_t>(chunks.size()));
    }
    fetching.wait();
  }
  // The cache must also have the document of each array: missing chunks are checked against it.
  for (const auto& variable : view->variables()) variable->array->confirm_present();
  const Fetching::Result result = fetching.result();
  if (result.failed > 0) {
    try {
      std::rethrow_exception(result.failure);
    } catch (const Error& error) {
      throw Error(
          error.code(),
          fmt::format("{} of {} chunks could not be fetched; the first: {}",
                      format_count(result.failed), format_count(chunks.size()), error.why()),
          error.where());
    }
  }
  check_shared_caches(stores, result.missing, warning.get());
  const std::uint64_t not_kept = counter(stores, "disk_cache_not_kept");
  if (not_kept > 0) {
    const std::string why = warning.get();
    throw Error(ErrorCode::io,
                fmt::format("{} reads of {} chunks could not be kept: {}", format_count(not_kept),
                            format_count(chunks.size()),
                            why.empty() ? "they do not fit into --cache-size" : why),
                with.config.cache_dir);
  }
  return {chunks.size(),
          result.missing,
          result.bytes,
          counter(stores, "disk_cache_bytes_written"),
          counter(stores, "disk_cache_evicted"),
          counter(stores, "via_requests"),
          counter(stores, "via_hits"),
          counter(stores, "via_misses")};
}

void write_warmed(const Warmed& warmed, const Json& origin, const WarmOptions& options,
                  Output& output) {
  if (options.run.task.json) {
    Json json = origin;
    for (const auto& [name, member] : kWarmed) json[name] = warmed.*member;
    output.write(json_text(json) + "\n");
    return;
  }
  output.write(
      fmt::format("{} chunks, {}", format_count(warmed.chunks), format_size(warmed.bytes)));
  if (warmed.written_bytes > 0 || warmed.via_requests == 0)
    output.write(
        fmt::format("; {} of the cache's files are new", format_size(warmed.written_bytes)));
  if (warmed.via_requests > 0)
    output.write(fmt::format("; shared caches had {} of {} requests", format_count(warmed.via_hits),
                             format_count(warmed.via_requests)));
  output.write("\n");
  if (warmed.missing_chunks > 0)
    output.write(fmt::format("{} of the chunks are not in the store: fill values\n",
                             format_count(warmed.missing_chunks)));
  if (warmed.evicted > 0)
    output.write(fmt::format(
        "{} older files were removed from the cache to make room; if they were of this view, "
        "it needs a larger --cache-size\n",
        format_count(warmed.evicted)));
}

/// The view of the command line, and its identity.
struct OpenedWarm {
  explicit OpenedWarm(const WarmOptions& options) : with(options.store) {
    with.config.cache_waits = true;
    with.config.warn = [this](const std::string& line) { warning.set(line); };
    opened = open_view(with, options.view, {.part = options.part});
    origin = {{"store", opened.opened.store->url()}, {"view", opened.view->name()}};
    identity = {{"command", "warm"},
                {"version", 2},
                {"store", place_digest(*opened.opened.store)},
                {"snapshot", opened.opened.snapshot_id()},
                {"view", fingerprint(resolved_view(*opened.view).dump())}};
    // The cache of one process is compared with the store when it is used.
    if (!options.run.is_task() && !options.run.merges()) return;
    source.emplace(source_arrays(*opened.view), SourceVersions::Options{with.threads, true});
    identity["source"] = source->digests();
  }
  OpenedWarm(const OpenedWarm&) = delete;
  OpenedWarm& operator=(const OpenedWarm&) = delete;

  LastWarning warning;  // outlives the store
  StoreOptions with;
  OpenedView opened;
  std::optional<SourceVersions> source;  // of tasks
  Json origin, identity;
};

void merge_warmed(const WarmOptions& options, Output& output) {
  std::optional<Json> identity;
  if (!options.store.store.empty()) identity = OpenedWarm(options).identity;
  Warmed sum;
  Json origin;
  const std::string where = shown_output(options.run.merge);
  merge_tasks(options.run, "warm", std::move(identity), options.store.config,
              [&](std::string_view result) {
                const Json part = parse_json(result, where);
                const JsonRef root(part, where);
                const JsonRef counts = root.at("counts");
                for (const auto& [name, member] : kWarmed)
                  sum.*member += static_cast<std::uint64_t>(counts.at(name).integer(0));
                origin = {{"store", root.at("store").string()}, {"view", root.at("view").string()}};
              });
  write_warmed(sum, origin, options, output);
}

void warm(const WarmOptions& options, Output& output) {
  check_task_run(options.run, {{"STORE", options.store.store}, {"--view", options.view}});
  if (options.run.merges()) return merge_warmed(options, output);
  const OpenedWarm of(options);
  const Stores stores = of.opened.opened.stores();
  if (options.store.config.cache_dir.empty() &&
      !std::all_of(stores.begin(), stores.end(),
                   [](const auto& each) { return needs_no_folder(*each); }))
    throw UsageError{
        "it needs --cache-dir, the directory of the cache, or --via, the shared caches"};
  const auto fetch = [&] {
    Warmed warmed = fetch_view(of.opened, of.with, options.run.task, of.warning);
    if (of.source) of.source->confirm();
    return warmed;
  };
  if (!options.run.is_task()) return write_warmed(fetch(), of.origin, options, output);
  do_task(options.run, of.identity, places_of(of.opened.opened), options.store.config, output, [&] {
    const Warmed warmed = fetch();
    Json part = of.origin;
    for (const auto& [name, member] : kWarmed) part["counts"][name] = warmed.*member;
    return json_text(part, -1);
  });
}

}  // namespace

CommandAction setup_warm(CLI::App& app) {
  const auto options = std::make_shared<WarmOptions>();
  add_store_options(app, options->store);
  add_other_stores(app, options->store);
  app.add_option("--view", options->view, "the view file; - is standard input")
      ->required()
      ->type_name("FILE");
  add_part_option(app, options->part);
  add_task_run_options(app, options->run);
  require_unless_merged(app, {"STORE", "--view"});
  return [options](Output& output) { warm(*options, output); };
}

}  // namespace batchfs
