#pragma once
// Explains why readers waited, and how to reduce the waiting.

#include <cstdint>
#include <string>
#include <vector>

#include "tools/monitor/activity.h"
#include "tools/monitor/timeline.h"

namespace batchfs {

/// The input of the advice.
struct WaitFacts {
  std::int64_t gets = 0;   // batches that readers asked for
  double wait_share = 0;   // of the readers' time
  double first_share = 0;  // of the waiting: for each reader's first batch
  // Shares of the waiting time: every thread was decoding; some were; none, and something was being
  // fetched; none of these.
  double decode_bound = 0, decode_few = 0, fetch_bound = 0, idle = 0;
  double decoding = 0;  // threads that decoded while a reader waited, on average
  std::int64_t threads = 0, processors = 0;
  bool remote = false, disk_cache = false;
  std::uint64_t throttled = 0, retries = 0;
  double decode_amplification = 0,
         fetch_amplification = 0;  // bytes decoded and fetched per byte delivered; 0: not known
  std::uint64_t evictions = 0, chunks = 0;  // of decoded chunks, ever; chunks decoded, ever
  double memory_share = 0;                  // of the budget, in use
  std::int64_t readers = 0, jumping = 0;    // jumping: readers that read their batches in no order
  std::uint64_t errors = 0;
  bool passthrough = true;
};

WaitFacts wait_facts(const Timeline& timeline, const Json& status, std::int64_t processors);

/// Sentences for people, most important first; at least one.
std::vector<std::string> wait_advice(const WaitFacts& facts);

}  // namespace batchfs
