#pragma once
// Activity of a mount between two samples of its status.json, which `top` shows.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/json.h"

namespace batchfs {

/// A reader without a request for this long is idle.
inline constexpr double kIdleSeconds = 10;

/// Rates are per second, between the two samples. If the daemon was restarted in between, they
/// count from its start.
struct Activity {
  struct Reader {
    std::string view, format;
    std::int64_t rank = 0, world = 1, epoch = 0, batch = 0, epoch_batches = 0, prefetch = 0;
    double batches = 0, bytes = 0;  // rates
    double wait_share = 0;          // seconds waited per second
    double median = 0, p99 = 0;     // seconds, of all its waits
    double idle = 0;                // seconds since its last batch
    std::uint64_t failures = 0;
  };
  struct Gpu {
    std::string name;
    std::uint64_t used = 0, memory = 0;
  };
  std::int64_t pid = 0;
  double uptime = 0, seconds = 0;  // seconds: between the samples
  bool passthrough = false;
  std::int64_t threads = 0;

  double fetched = 0, decoded = 0, delivered = 0;  // bytes, rates
  double chunks = 0, batches = 0;                  // rates
  double cache_hits = 0;                           // share of the chunks that were needed
  bool remote = false;                             // the members below are known
  double requests = 0, received = 0;               // rates
  std::uint64_t in_flight = 0, waiting = 0, limit = 0, retries = 0, hedges = 0, failures = 0;
  bool disk_cache = false;
  double disk_hits = 0;  // a share
  bool shared_caches = false;
  double via_requests = 0, via_received = 0;  // rates
  // a share; nullopt: the caches do not report it
  std::optional<double> via_hits;
  std::uint64_t via_fallbacks = 0, via_failures = 0;  // since the start

  std::uint64_t memory_used = 0, memory_budget = 0, memory_resident = 0, chunk_cache = 0;
  std::uint64_t errors = 0;
  std::int64_t handoff_readers = 0;
  std::vector<Gpu> gpus;
  std::vector<Reader> readers;  // busiest in the last interval first
};

/// `earlier` may be null: everything since the mount began. Values that status.json lacks are 0.
Activity activity(const Json& earlier, const Json& later);

/// The readers with the rates of the last seconds, from status.json itself.
std::vector<Activity::Reader> recent_readers(const Json& status);

/// Machine-readable form. Keys are only ever added.
Json activity_json(const Activity& activity);

}  // namespace batchfs
