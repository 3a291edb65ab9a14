#include "tools/monitor/activity.h"

#include <algorithm>
#include <cmath>

#include "tools/cli/json_fields.h"

namespace batchfs {

namespace {

/// How fast a counter grew between two looks.
class Growth {
 public:
  explicit Growth(double seconds) : seconds_(seconds) {}
  double of(const Json& earlier, const Json& later, const char* key) const {
    return std::max(0.0, number_field(later, key) - number_field(earlier, key)) / seconds_;
  }

 private:
  const double seconds_;
};

double share(double part, double rest) { return part + rest > 0 ? part / (part + rest) : 0; }

const Json& same_stream(const Json& streams, const Json& stream) {
  static const Json kNone = Json::object();
  for (const Json& other : streams)
    if (text_field(other, "view") == text_field(stream, "view") &&
        text_field(other, "format") == text_field(stream, "format") &&
        integer_field(other, "rank") == integer_field(stream, "rank") &&
        integer_field(other, "world") == integer_field(stream, "world"))
      return other;
  return kNone;
}

Activity::Reader reader_activity(const Json& earlier, const Json& later, const Growth& growth) {
  Activity::Reader r;
  r.view = text_field(later, "view");
  r.format = text_field(later, "format");
  r.rank = integer_field(later, "rank");
  r.world = integer_field(later, "world");
  r.epoch = integer_field(later, "epoch");
  r.batch = integer_field(later, "batch");
  r.epoch_batches = integer_field(later, "epoch_batches");
  r.prefetch = integer_field(later, "prefetch");
  r.batches = growth.of(earlier, later, "batches");
  r.bytes = growth.of(earlier, later, "bytes");
  r.wait_share =
      growth.of(object_field(earlier, "wait_seconds"), object_field(later, "wait_seconds"), "sum");
  r.median = number_field(object_field(later, "wait_seconds"), "p50");
  r.p99 = number_field(object_field(later, "wait_seconds"), "p99");
  r.idle = number_field(later, "idle_seconds");
  r.failures = count_field(later, "failures");
  return r;
}

}  // namespace

Activity activity(const Json& earlier_look, const Json& later) {
  static const Json kStart = Json::object();
  const bool same =
      integer_field(earlier_look, "pid") == integer_field(later, "pid") &&
      number_field(earlier_look, "uptime_seconds") < number_field(later, "uptime_seconds");
  const Json& earlier = same ? earlier_look : kStart;
  Activity a;
  a.pid = integer_field(later, "pid");
  a.uptime = number_field(later, "uptime_seconds");
  a.seconds = std::max(1e-6, a.uptime - number_field(earlier, "uptime_seconds"));
  const auto passthrough = later.find("passthrough");
  a.passthrough =
      passthrough != later.end() && passthrough->is_boolean() && passthrough->get<bool>();
  a.threads = integer_field(later, "threads");
  const Growth growth(a.seconds);
  a.fetched = growth.of(earlier, later, "bytes_fetched");
  a.decoded = growth.of(earlier, later, "bytes_decoded");
  a.delivered = growth.of(earlier, later, "bytes_delivered");
  a.chunks = growth.of(earlier, later, "chunks_decoded");
  a.batches = growth.of(earlier, later, "batches_opened");
  a.cache_hits = share(growth.of(earlier, later, "chunk_cache_hits"), a.chunks);

  const Json& store = object_field(later, "store");
  const Json& store_before = object_field(earlier, "store");
  a.remote = !store.empty();
  a.requests = growth.of(store_before, store, "requests");
  a.received = growth.of(store_before, store, "bytes_received");
  a.in_flight = count_field(store, "requests_in_flight");
  a.waiting = count_field(store, "requests_waiting");
  a.limit = count_field(store, "request_limit");
  a.retries = count_field(store, "retries");
  a.hedges = count_field(store, "hedges");
  a.failures = count_field(store, "failures");
  a.disk_cache = store.contains("disk_cache_hits");
  a.disk_hits = share(growth.of(store_before, store, "disk_cache_hits"),
                      growth.of(store_before, store, "disk_cache_misses"));
  a.shared_caches = store.contains("via_requests");
  a.via_requests = growth.of(store_before, store, "via_requests");
  a.via_received = growth.of(store_before, store, "via_bytes");
  const double hits = growth.of(store_before, store, "via_hits"),
               misses = growth.of(store_before, store, "via_misses");
  if (hits + misses > 0) a.via_hits = share(hits, misses);
  a.via_fallbacks = count_field(store, "via_fallbacks");
  a.via_failures = count_field(store, "via_failures");

  a.memory_used = count_field(later, "memory_used");
  a.memory_budget = count_field(later, "memory_budget");
  a.memory_resident = count_field(later, "memory_resident");
  a.chunk_cache = count_field(later, "chunk_cache_bytes");
  a.errors = count_field(later, "errors");
  a.handoff_readers = integer_field(object_field(later, "handoff"), "readers");
  for (const Json& gpu : list_field(object_field(later, "handoff"), "gpus"))
    if (gpu.is_object())
      a.gpus.push_back({text_field(gpu, "name"), count_field(gpu, "memory_used"),
                        count_field(gpu, "memory_limit")});
  for (const Json& stream : list_field(later, "streams"))
    if (stream.is_object())
      a.readers.push_back(
          reader_activity(same_stream(list_field(earlier, "streams"), stream), stream, growth));
  std::stable_sort(
      a.readers.begin(), a.readers.end(),
      [](const Activity::Reader& x, const Activity::Reader& y) { return x.bytes > y.bytes; });
  return a;
}

std::vector<Activity::Reader> recent_readers(const Json& status) {
  std::vector<Activity::Reader> readers;
  for (const Json& stream : list_field(status, "streams")) {
    if (!stream.is_object()) continue;
    Activity::Reader reader = reader_activity(Json::object(), stream, Growth(1));
    reader.batches = number_field(stream, "batches_per_second");
    reader.bytes = number_field(stream, "bytes_per_second");
    reader.wait_share = number_field(stream, "wait_share");
    readers.push_back(std::move(reader));
  }
  return readers;
}

Json activity_json(const Activity& a) {
  Json readers = Json::array(), gpus = Json::array();
  for (const Activity::Reader& r : a.readers)
    readers.push_back({{"view", r.view},
                       {"format", r.format},
                       {"rank", r.rank},
                       {"world", r.world},
                       {"epoch", r.epoch},
                       {"batch", r.batch},
                       {"epoch_batches", r.epoch_batches},
                       {"prefetch", r.prefetch},
                       {"batches_per_second", r.batches},
                       {"bytes_per_second", r.bytes},
                       {"wait_share", r.wait_share},
                       {"wait_p50_seconds", r.median},
                       {"wait_p99_seconds", r.p99},
                       {"idle_seconds", r.idle},
                       {"failures", r.failures}});
  for (const Activity::Gpu& gpu : a.gpus)
    gpus.push_back({{"name", gpu.name}, {"memory_used", gpu.used}, {"memory", gpu.memory}});
  Json json = {{"pid", a.pid},
               {"uptime_seconds", a.uptime},
               {"interval_seconds", a.seconds},
               {"passthrough", a.passthrough},
               {"threads", a.threads},
               {"fetched_bytes_per_second", a.fetched},
               {"decoded_bytes_per_second", a.decoded},
               {"delivered_bytes_per_second", a.delivered},
               {"chunks_per_second", a.chunks},
               {"batches_per_second", a.batches},
               {"cache_hit_share", a.cache_hits},
               {"memory_used", a.memory_used},
               {"memory_budget", a.memory_budget},
               {"memory_resident", a.memory_resident},
               {"chunk_cache_bytes", a.chunk_cache},
               {"errors", a.errors},
               {"handoff_readers", a.handoff_readers}};
  json["gpus"] = std::move(gpus);
  json["readers"] = std::move(readers);
  if (a.remote)
    json["store"] = {{"requests_per_second", a.requests},
                     {"received_bytes_per_second", a.received},
                     {"in_flight", a.in_flight},
                     {"waiting", a.waiting},
                     {"limit", a.limit},
                     {"retries", a.retries},
                     {"hedges", a.hedges},
                     {"failures", a.failures}};
  if (a.disk_cache) json["store"]["disk_cache_hit_share"] = a.disk_hits;
  if (a.shared_caches) {
    json["store"]["via"] = {{"requests_per_second", a.via_requests},
                            {"received_bytes_per_second", a.via_received},
                            {"fallbacks", a.via_fallbacks},
                            {"failures", a.via_failures}};
    if (a.via_hits) json["store"]["via"]["hit_share"] = *a.via_hits;
  }
  return json;
}

}  // namespace batchfs
