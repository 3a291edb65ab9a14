// The control files that say what a mount is doing: status.json, metrics, trace.json.

#include <fstream>

#include <fmt/format.h>

#include <unistd.h>

#include "engine/base/json_text.h"
#include "engine/telemetry/trace_json.h"
#include "fs/control/prometheus.h"
#include "fs/file_system.h"

namespace batchfs {

namespace {

constexpr std::uint64_t kTraced = 60'000'000'000;  // nanoseconds

double seconds(std::uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e9; }

/// What of this process lies in memory, mapped batches included; 0 where it is not told. Source:
/// proc(5), statm.
std::uint64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t size = 0, resident = 0;
  statm >> size >> resident;
  return statm ? resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) : 0;
}

Json waits_json(const LatencyHistogram& waits) {
  return {{"count", waits.count()},
          {"sum", seconds(waits.sum())},
          {"mean", waits.mean() * 1e-9},
          {"p50", waits.quantile(0.5) * 1e-9},
          {"p99", waits.quantile(0.99) * 1e-9},
          {"max", seconds(waits.max())}};
}

bool is_level(const std::string& store_counter) {
  return store_counter == "requests_in_flight" || store_counter == "requests_waiting" ||
         store_counter == "request_limit" || store_counter.ends_with("object_versions");
}

/// What fades away and never is zero.
double rate_json(double rate) { return rate < 1e-6 ? 0 : rate; }

}  // namespace

Json FileSystem::streams_json() const {
  const std::vector<Prefetcher::StreamState> ahead = engine_.state().streams;
  Json streams = Json::array();
  for (const StreamStatistics::Stream& reader : engine_.streams().list(Trace::now())) {
    std::int64_t prefetch = 0;
    for (const Prefetcher::StreamState& s : ahead)
      if (s.view == reader.view && s.format == reader.format && s.rank == reader.rank &&
          s.world == reader.world)
        prefetch = s.prefetch;
    streams.push_back({{"view", reader.view},
                       {"format", reader.format},
                       {"rank", reader.rank},
                       {"world", reader.world},
                       {"epoch", reader.epoch},
                       {"batch", reader.batch},
                       {"epoch_batches", reader.epoch_batches},
                       {"prefetch", prefetch},
                       {"batches", reader.batches},
                       {"bytes", reader.bytes},
                       {"failures", reader.failures},
                       {"batches_per_second", rate_json(reader.batches_per_second)},
                       {"bytes_per_second", rate_json(reader.bytes_per_second)},
                       {"wait_share", rate_json(reader.wait_share)},
                       {"idle_seconds", seconds(reader.idle)},
                       {"wait_seconds", waits_json(reader.waits)}});
  }
  return streams;
}

std::string FileSystem::status_text() const {
  const Counters& counters = engine_.counters();
  Json json = {{"pid", ::getpid()}, {"passthrough", passthrough_.load()}};
  json["uptime_seconds"] = seconds(Trace::now() - started_);
  for (const CounterInfo& info : counter_table())
    json[std::string(info.name)] = (counters.*info.value).load();
  json["reader_wait_seconds"] = seconds(counters.reader_wait_nanoseconds.load());
  json["memory_budget"] = engine_.budget().limit();
  json["memory_used"] = engine_.budget().used();
  json["memory_resident"] = resident_bytes();
  // What readers still map of files that they have closed counts against the budget, but nobody can
  // take it back.
  json["memory_mapped_after_close"] = engine_.memory_files().mapped_by_others();
  json["memory_spare"] = engine_.memory_files().spare_bytes();
  if (const auto cgroup = cgroup_memory()) {
    json["cgroup"] = {{"memory_used", cgroup->used}, {"memory_shared", cgroup->shared}};
    if (cgroup->limit != UINT64_MAX) json["cgroup"]["memory_limit"] = cgroup->limit;
  }
  const Engine::State state = engine_.state();
  json["chunk_cache_bytes"] = state.cache_bytes;
  json["threads"] = state.threads;
  json["readers_waiting"] = state.readers_waiting;
  json["readers_waiting_for_memory"] = state.waiting_for_memory;
  json["wait_seconds"] = waits_json(engine_.streams().waits());
  json["streams"] = streams_json();
  if (options_.handoff_statistics) json["handoff"] = options_.handoff_statistics();
  Json store = Json::object();
  for (const Store::Counter& counter : store_->counters()) store[counter.name] = counter.value;
  if (!store.empty()) json["store"] = std::move(store);
  return json_text(json) + "\n";
}

std::string FileSystem::metrics_text() const {
  const Counters& counters = engine_.counters();
  PrometheusText text;
  for (const CounterInfo& info : counter_table()) {
    if (info.name == "reader_wait_nanoseconds") continue;  // in seconds, below
    text.counter(prometheus_name(info.name), info.help,
                 static_cast<double>((counters.*info.value).load()));
  }
  text.counter("reader_wait_seconds", "Time that readers waited in open",
               seconds(counters.reader_wait_nanoseconds.load()));
  text.histogram("get_batch_seconds",
                 "Time from asking for a batch to having it, also of those that were ready",
                 engine_.streams().waits());
  text.gauge("memory_budget_bytes", "Memory that may be used for chunks and batches",
             static_cast<double>(engine_.budget().limit()));
  text.gauge("memory_used_bytes", "Memory reserved for chunks and batches",
             static_cast<double>(engine_.budget().used()));
  text.gauge("memory_resident_bytes", "Memory of the process, mapped batches included",
             static_cast<double>(resident_bytes()));
  text.gauge("memory_spare_bytes", "Memory of released hand-off batches, kept for the next ones",
             static_cast<double>(engine_.memory_files().spare_bytes()));
  text.gauge("memory_mapped_after_close_bytes",
             "Memory of batches that readers closed and still map, at least",
             static_cast<double>(engine_.memory_files().mapped_by_others()));
  if (const auto cgroup = cgroup_memory())
    text.gauge("cgroup_memory_shared_bytes",
               "Files in memory of the control group, batches among them",
               static_cast<double>(cgroup->shared));
  const Engine::State state = engine_.state();
  text.gauge("readers_waiting", "Readers that wait for a batch or a read",
             static_cast<double>(state.readers_waiting));
  text.gauge("readers_waiting_for_memory", "Of these, readers that wait for memory",
             static_cast<double>(state.waiting_for_memory));
  text.gauge("chunk_cache_bytes", "Memory of decoded chunks that are kept",
             static_cast<double>(state.cache_bytes));
  text.gauge("threads", "Threads that decode", state.threads);
  text.gauge("passthrough", "Whether the kernel reads batches itself", passthrough_.load() ? 1 : 0);
  text.gauge("uptime_seconds", "Time since the mount began", seconds(Trace::now() - started_));

  std::vector<PrometheusText::Sample> batches, bytes, waits, failures;
  for (const StreamStatistics::Stream& reader : engine_.streams().list(Trace::now())) {
    const PrometheusText::Labels labels{{"view", reader.view},
                                        {"format", reader.format},
                                        {"rank", std::to_string(reader.rank)},
                                        {"world", std::to_string(reader.world)}};
    batches.push_back({labels, static_cast<double>(reader.batches)});
    bytes.push_back({labels, static_cast<double>(reader.bytes)});
    waits.push_back({labels, seconds(reader.waits.sum())});
    failures.push_back({labels, static_cast<double>(reader.failures)});
  }
  text.counter("stream_batches", "Batches given to a reader", batches);
  text.counter("stream_bytes", "Bytes of batches given to a reader", bytes);
  text.counter("stream_wait_seconds", "Time that a reader waited for batches", waits);
  text.counter("stream_failures", "Batches that a reader could not be given", failures);

  for (const Store::Counter& counter : store_->counters()) {
    std::string words = counter.name;
    for (char& c : words)
      if (c == '_') c = ' ';
    const std::string name = "store_" + prometheus_name(counter.name);
    if (is_level(counter.name))
      text.gauge(name, "Of the store, now: " + words, static_cast<double>(counter.value));
    else
      text.counter(name, "Of the store: " + words, static_cast<double>(counter.value));
  }
  return text.text();
}

std::string FileSystem::trace_text() const {
  return trace_json(engine_.trace().last(kTraced), "batchfs " + options_.store_url, ::getpid());
}

}  // namespace batchfs
