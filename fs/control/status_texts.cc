#include "fs/control/status_texts.h"

#include <unistd.h>

#include "engine/base/json_text.h"
#include "engine/telemetry/trace_json.h"
#include "fs/control/prometheus.h"

namespace batchfs {

namespace {

constexpr std::uint64_t kTraced = 60'000'000'000;  // nanoseconds

double seconds(std::uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e9; }

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

/// Shows a decaying average, which never reaches zero, as 0 once it is negligible.
double rate_json(double rate) { return rate < 1e-6 ? 0 : rate; }

/// Number of batches prefetched ahead of a stream's reader.
std::int64_t prefetch_of(const MountState& state, const StreamStatistics::Stream& stream) {
  std::int64_t prefetch = 0;
  for (const Prefetcher::StreamState& ahead : state.engine.streams)
    if (ahead.view == stream.view && ahead.format == stream.format && ahead.rank == stream.rank &&
        ahead.world == stream.world)
      prefetch = ahead.prefetch;
  return prefetch;
}

Json streams_json(const MountState& state) {
  Json streams = Json::array();
  for (const StreamStatistics::Stream& stream : state.streams)
    streams.push_back({{"view", stream.view},
                       {"format", stream.format},
                       {"rank", stream.rank},
                       {"world", stream.world},
                       {"epoch", stream.epoch},
                       {"batch", stream.batch},
                       {"epoch_batches", stream.epoch_batches},
                       {"prefetch", prefetch_of(state, stream)},
                       {"batches", stream.batches},
                       {"bytes", stream.bytes},
                       {"failures", stream.failures},
                       {"batches_per_second", rate_json(stream.batches_per_second)},
                       {"bytes_per_second", rate_json(stream.bytes_per_second)},
                       {"wait_share", rate_json(stream.wait_share)},
                       {"idle_seconds", seconds(stream.idle)},
                       {"wait_seconds", waits_json(stream.waits)}});
  return streams;
}

void add_streams(PrometheusText& text, const MountState& state) {
  std::vector<PrometheusText::Sample> batches, bytes, waits, failures;
  for (const StreamStatistics::Stream& stream : state.streams) {
    const PrometheusText::Labels labels{{"view", stream.view},
                                        {"format", stream.format},
                                        {"rank", std::to_string(stream.rank)},
                                        {"world", std::to_string(stream.world)}};
    batches.push_back({labels, static_cast<double>(stream.batches)});
    bytes.push_back({labels, static_cast<double>(stream.bytes)});
    waits.push_back({labels, seconds(stream.waits.sum())});
    failures.push_back({labels, static_cast<double>(stream.failures)});
  }
  text.counter("stream_batches", "Batches given to a reader", batches);
  text.counter("stream_bytes", "Bytes of batches given to a reader", bytes);
  text.counter("stream_wait_seconds", "Time that a reader waited for batches", waits);
  text.counter("stream_failures", "Batches that a reader could not be given", failures);
}

void add_store(PrometheusText& text, const MountState& state) {
  for (const Store::Counter& counter : state.store) {
    std::string words = counter.name;
    for (char& c : words)
      if (c == '_') c = ' ';
    const std::string name = "store_" + prometheus_name(counter.name);
    if (is_level(counter.name))
      text.gauge(name, "Of the store, now: " + words, static_cast<double>(counter.value));
    else
      text.counter(name, "Of the store: " + words, static_cast<double>(counter.value));
  }
}

}  // namespace

std::string status_json(const MountState& state) {
  Json json = {{"pid", state.pid}, {"passthrough", state.passthrough}};
  if (!state.snapshot.is_null()) json["snapshot"] = state.snapshot;
  json["generations"] = state.generations;
  json["kernel_names"] = state.kernel_names;
  json["uptime_seconds"] = seconds(state.uptime);
  for (const MountState::Counter& counter : state.counters)
    json[std::string(counter.name)] = counter.value;
  json["reader_wait_seconds"] = seconds(state.counter("reader_wait_nanoseconds"));
  json["memory_budget"] = state.memory_budget;
  json["memory_used"] = state.memory_used;
  json["memory_resident"] = state.memory_resident;
  json["memory_mapped_after_close"] = state.memory_mapped_after_close;
  json["memory_spare"] = state.memory_spare;
  if (state.cgroup) {
    json["cgroup"] = {{"memory_used", state.cgroup->used}, {"memory_shared", state.cgroup->shared}};
    if (state.cgroup->limit != UINT64_MAX) json["cgroup"]["memory_limit"] = state.cgroup->limit;
  }
  json["chunk_cache_bytes"] = state.engine.cache_bytes;
  json["threads"] = state.engine.threads;
  json["readers_waiting"] = state.engine.readers_waiting;
  json["readers_waiting_for_memory"] = state.engine.waiting_for_memory;
  json["wait_seconds"] = waits_json(state.waits);
  json["streams"] = streams_json(state);
  if (!state.handoff.is_null()) json["handoff"] = state.handoff;
  Json store = Json::object();
  for (const Store::Counter& counter : state.store) store[counter.name] = counter.value;
  if (!store.empty()) json["store"] = std::move(store);
  return json_text(json) + "\n";
}

std::string metrics_text(const MountState& state) {
  PrometheusText text;
  const auto gauge = [&text](std::string_view name, std::string_view help, std::uint64_t value) {
    text.gauge(name, help, static_cast<double>(value));
  };
  for (const MountState::Counter& counter : state.counters)
    if (counter.name != "reader_wait_nanoseconds")  // in seconds, below
      text.counter(prometheus_name(counter.name), counter.help, static_cast<double>(counter.value));
  text.counter("reader_wait_seconds", "Time that readers waited in open",
               seconds(state.counter("reader_wait_nanoseconds")));
  text.histogram("get_batch_seconds",
                 "Time from asking for a batch to having it, also of those that were ready",
                 state.waits);
  gauge("memory_budget_bytes", "Memory that may be used for chunks and batches",
        state.memory_budget);
  gauge("memory_used_bytes", "Memory reserved for chunks and batches", state.memory_used);
  gauge("memory_resident_bytes", "Memory of the process, mapped batches included",
        state.memory_resident);
  gauge("memory_spare_bytes", "Memory of released hand-off batches, kept for the next ones",
        state.memory_spare);
  gauge("memory_mapped_after_close_bytes",
        "Memory of batches that readers closed and still map, at least",
        state.memory_mapped_after_close);
  if (state.cgroup)
    gauge("cgroup_memory_shared_bytes", "Files in memory of the control group, batches among them",
          state.cgroup->shared);
  gauge("readers_waiting", "Readers that wait for a batch or a read", state.engine.readers_waiting);
  gauge("readers_waiting_for_memory", "Of these, readers that wait for memory",
        state.engine.waiting_for_memory);
  gauge("chunk_cache_bytes", "Memory of decoded chunks that are kept", state.engine.cache_bytes);
  text.gauge("threads", "Threads that decode", state.engine.threads);
  text.gauge("passthrough", "Whether the kernel reads batches itself", state.passthrough ? 1 : 0);
  gauge("generations", "States of the store that programs use, the newest included",
        state.generations);
  gauge("kernel_names", "Names of the mount that the kernel keeps", state.kernel_names);
  text.gauge("uptime_seconds", "Time since the mount began", seconds(state.uptime));
  add_streams(text, state);
  add_store(text, state);
  return text.text();
}

std::string recent_trace(const Trace& trace, const std::string& store_url) {
  return trace_json(trace.last(kTraced), "batchfs " + store_url, ::getpid());
}

}  // namespace batchfs
