#pragma once
// The engine's counters. One struct of relaxed atomics, one table that names them: status.json and
// the Prometheus text are written from the table.

#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>

namespace batchfs {

struct Counters {
  std::atomic<std::uint64_t> bytes_fetched{0};    // stored bytes read from the store
  std::atomic<std::uint64_t> bytes_decoded{0};    // bytes that left a decoder
  std::atomic<std::uint64_t> bytes_delivered{0};  // of batches, also in GPU memory, and values
  std::atomic<std::uint64_t> chunks_fetched{0};
  std::atomic<std::uint64_t> chunks_decoded{0};
  std::atomic<std::uint64_t> chunk_cache_hits{0};
  std::atomic<std::uint64_t> chunk_cache_evictions{0};
  std::atomic<std::uint64_t> batches_assembled{0};
  std::atomic<std::uint64_t> batches_opened{0};
  std::atomic<std::uint64_t> batches_prefetched{0};  // assembled before a reader asked
  std::atomic<std::uint64_t> reader_wait_nanoseconds{0};
  std::atomic<std::uint64_t> reader_waits{0};  // opens that had to wait
  std::atomic<std::uint64_t> errors{0};
};

struct CounterInfo {
  std::string_view name;
  std::string_view help;
  std::atomic<std::uint64_t> Counters::*value;
};

/// Every counter, in a stable order. Names are only ever added.
std::span<const CounterInfo> counter_table();

}  // namespace batchfs
