#include "tools/activity.h"

#include <algorithm>
#include <cmath>

namespace batchfs {

namespace {

double number(const Json& json, const char* key) {
  if (!json.is_object()) return 0;
  const auto it = json.find(key);
  return it != json.end() && it->is_number() ? it->get<double>() : 0;
}

std::uint64_t count(const Json& json, const char* key) {
  const double value = number(json, key);
  return value > 0 && value < 1e19 ? static_cast<std::uint64_t>(value) : 0;
}

std::int64_t integer(const Json& json, const char* key) {
  const double value = number(json, key);
  return std::fabs(value) < 9e18 ? static_cast<std::int64_t>(value) : 0;
}

std::string text(const Json& json, const char* key) {
  const auto it = json.find(key);
  return it != json.end() && it->is_string() ? it->get<std::string>() : "";
}

const Json& object(const Json& json, const char* key) {
  static const Json kNone = Json::object();
  if (!json.is_object()) return kNone;
  const auto it = json.find(key);
  return it != json.end() && it->is_object() ? *it : kNone;
}

const Json& list(const Json& json, const char* key) {
  static const Json kNone = Json::array();
  if (!json.is_object()) return kNone;
  const auto it = json.find(key);
  return it != json.end() && it->is_array() ? *it : kNone;
}

/// How fast a counter grew between two looks.
class Growth {
 public:
  explicit Growth(double seconds) : seconds_(seconds) {}
  double of(const Json& earlier, const Json& later, const char* key) const {
    return std::max(0.0, number(later, key) - number(earlier, key)) / seconds_;
  }

 private:
  const double seconds_;
};

double share(double part, double rest) { return part + rest > 0 ? part / (part + rest) : 0; }

const Json& same_stream(const Json& streams, const Json& stream) {
  static const Json kNone = Json::object();
  for (const Json& other : streams)
    if (text(other, "view") == text(stream, "view") && text(other, "format") == text(stream, "format") &&
        integer(other, "rank") == integer(stream, "rank") && integer(other, "world") == integer(stream, "world"))
      return other;
  return kNone;
}

Activity::Reader reader(const Json& earlier, const Json& later, const Growth& growth) {
  Activity::Reader r;
  r.view = text(later, "view");
  r.format = text(later, "format");
  r.rank = integer(later, "rank");
  r.world = integer(later, "world");
  r.epoch = integer(later, "epoch");
  r.batch = integer(later, "batch");
  r.epoch_batches = integer(later, "epoch_batches");
  r.window = integer(later, "window");
  r.batches = growth.of(earlier, later, "batches");
  r.bytes = growth.of(earlier, later, "bytes");
  r.wait_share = growth.of(object(earlier, "wait_seconds"), object(later, "wait_seconds"), "sum");
  r.median = number(object(later, "wait_seconds"), "p50");
  r.p99 = number(object(later, "wait_seconds"), "p99");
  r.idle = number(later, "idle_seconds");
  r.failures = count(later, "failures");
  return r;
}

}  // namespace

Activity activity(const Json& earlier_look, const Json& later) {
  static const Json kStart = Json::object();
  const bool same = integer(earlier_look, "pid") == integer(later, "pid") &&
                    number(earlier_look, "uptime_seconds") < number(later, "uptime_seconds");
  const Json& earlier = same ? earlier_look : kStart;
  Activity a;
  a.pid = integer(later, "pid");
  a.uptime = number(later, "uptime_seconds");
  a.seconds = std::max(1e-6, a.uptime - number(earlier, "uptime_seconds"));
  const auto passthrough = later.find("passthrough");
  a.passthrough = passthrough != later.end() && passthrough->is_boolean() && passthrough->get<bool>();
  a.threads = integer(later, "threads");
  const Growth growth(a.seconds);
  a.fetched = growth.of(earlier, later, "bytes_fetched");
  a.decoded = growth.of(earlier, later, "bytes_decoded");
  a.delivered = growth.of(earlier, later, "bytes_delivered");
  a.chunks = growth.of(earlier, later, "chunks_decoded");
  a.batches = growth.of(earlier, later, "batches_opened");
  a.cache_hits = share(growth.of(earlier, later, "chunk_cache_hits"), a.chunks);

  const Json& store = object(later, "store");
  const Json& store_before = object(earlier, "store");
  a.remote = !store.empty();
  a.requests = growth.of(store_before, store, "requests");
  a.received = growth.of(store_before, store, "bytes_received");
  a.in_flight = count(store, "requests_in_flight");
  a.waiting = count(store, "requests_waiting");
  a.limit = count(store, "request_limit");
  a.retries = count(store, "retries");
  a.hedges = count(store, "hedges");
  a.failures = count(store, "failures");
  a.disk_cache = store.contains("disk_cache_hits");
  a.disk_hits = share(growth.of(store_before, store, "disk_cache_hits"), growth.of(store_before, store, "disk_cache_misses"));

  a.memory_used = count(later, "memory_used");
  a.memory_budget = count(later, "memory_budget");
  a.memory_resident = count(later, "memory_resident");
  a.chunk_cache = count(later, "chunk_cache_bytes");
  a.errors = count(later, "errors");
  a.handoff_readers = integer(object(later, "handoff"), "readers");
  for (const Json& gpu : list(object(later, "handoff"), "gpus"))
    if (gpu.is_object()) a.gpus.push_back({text(gpu, "name"), count(gpu, "memory_used"), count(gpu, "memory_limit")});
  for (const Json& stream : list(later, "streams"))
    if (stream.is_object()) a.readers.push_back(reader(same_stream(list(earlier, "streams"), stream), stream, growth));
  std::stable_sort(a.readers.begin(), a.readers.end(),
                   [](const Activity::Reader& x, const Activity::Reader& y) { return x.bytes > y.bytes; });
  return a;
}

Json activity_json(const Activity& a) {
  Json readers = Json::array(), gpus = Json::array();
  for (const Activity::Reader& r : a.readers)
    readers.push_back({{"view", r.view}, {"format", r.format}, {"rank", r.rank}, {"world", r.world},
                       {"epoch", r.epoch}, {"batch", r.batch}, {"epoch_batches", r.epoch_batches},
                       {"window", r.window}, {"batches_per_second", r.batches}, {"bytes_per_second", r.bytes},
                       {"wait_share", r.wait_share}, {"wait_p50_seconds", r.median}, {"wait_p99_seconds", r.p99},
                       {"idle_seconds", r.idle}, {"failures", r.failures}});
  for (const Activity::Gpu& gpu : a.gpus)
    gpus.push_back({{"name", gpu.name}, {"memory_used", gpu.used}, {"memory", gpu.memory}});
  Json json = {{"pid", a.pid}, {"uptime_seconds", a.uptime}, {"interval_seconds", a.seconds},
               {"passthrough", a.passthrough}, {"threads", a.threads},
               {"fetched_bytes_per_second", a.fetched}, {"decoded_bytes_per_second", a.decoded},
               {"delivered_bytes_per_second", a.delivered}, {"chunks_per_second", a.chunks},
               {"batches_per_second", a.batches}, {"cache_hit_share", a.cache_hits},
               {"memory_used", a.memory_used}, {"memory_budget", a.memory_budget},
               {"memory_resident", a.memory_resident}, {"chunk_cache_bytes", a.chunk_cache},
               {"errors", a.errors}, {"handoff_readers", a.handoff_readers}};
  json["gpus"] = std::move(gpus);
  json["readers"] = std::move(readers);
  if (a.remote)
    json["store"] = {{"requests_per_second", a.requests}, {"received_bytes_per_second", a.received},
                     {"in_flight", a.in_flight}, {"waiting", a.waiting}, {"limit", a.limit},
                     {"retries", a.retries}, {"hedges", a.hedges}, {"failures", a.failures}};
  if (a.disk_cache) json["store"]["disk_cache_hit_share"] = a.disk_hits;
  return json;
}

}  // namespace batchfs
