#pragma once
// Deliveries of each stream, their rate, and how long its reader waited. A stream is a reader's way
// through a view: a (view, format, rank, world), however many processes share it.

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "engine/pipeline/prefetch/prefetcher.h"
#include "engine/telemetry/latency_histogram.h"

namespace batchfs {

/// An amount per second, of the last ten seconds or so: older ones count less and less.
class Rate {
 public:
  void add(double amount, std::uint64_t now);
  double per_second(std::uint64_t now) const;

 private:
  double sum_ = 0;
  std::uint64_t first_ = 0, last_ = 0;  // nanoseconds
};

/// Thread-safe. Remembers the 256 streams that were read last.
class StreamStatistics {
 public:
  /// Records that a reader received a batch of `bytes`, or an error, after `waited` nanoseconds.
  void record_delivery(const BatchRequest& request, std::uint64_t bytes, std::uint64_t waited,
                       bool failed, std::uint64_t now);

  struct Stream {
    std::string view, format;
    std::int64_t rank = 0, world = 1;
    std::int64_t epoch = 0, batch = 0;  // delivered last; of the rank
    std::int64_t epoch_batches = 0;     // how many the rank has in an epoch
    std::uint64_t batches = 0, bytes = 0, failures = 0;
    LatencyHistogram waits;  // one for each batch, also when it was ready already
    double batches_per_second = 0;
    double bytes_per_second = 0;
    double wait_share = 0;   // seconds waited per second
    std::uint64_t idle = 0;  // nanoseconds since the last batch
  };
  /// By view, format, world and rank.
  std::vector<Stream> list(std::uint64_t now) const;
  /// For all streams, forgotten ones included.
  LatencyHistogram waits() const;

 private:
  struct Record {
    Stream stream;
    Rate batches, bytes, waited;
    std::uint64_t last = 0;
  };
  using Key = std::tuple<std::string, std::string, std::int64_t, std::int64_t>;

  /// Guards the members below. No other lock is taken with it held.
  mutable std::mutex mutex_;
  std::map<Key, Record> records_;
  LatencyHistogram waits_;
};

}  // namespace batchfs
