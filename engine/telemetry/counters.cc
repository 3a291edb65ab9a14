#include "engine/telemetry/counters.h"

namespace batchfs {

std::span<const CounterInfo> counter_table() {
  static constexpr CounterInfo kTable[] = {
      {"bytes_fetched", "Stored bytes read from the store", &Counters::bytes_fetched},
      {"bytes_decoded", "Bytes that left a decoder", &Counters::bytes_decoded},
      {"bytes_delivered", "Bytes of batches and values given to readers",
       &Counters::bytes_delivered},
      {"chunks_fetched", "Chunks read from the store", &Counters::chunks_fetched},
      {"chunks_decoded", "Chunks decoded", &Counters::chunks_decoded},
      {"chunk_cache_hits", "Chunks found already decoded", &Counters::chunk_cache_hits},
      {"chunk_cache_evictions", "Decoded chunks dropped for lack of memory",
       &Counters::chunk_cache_evictions},
      {"batches_assembled", "Batches assembled", &Counters::batches_assembled},
      {"batches_opened", "Batch files opened by readers", &Counters::batches_opened},
      {"batches_prefetched", "Batches begun before a reader asked", &Counters::batches_prefetched},
      {"reader_wait_nanoseconds", "Time that readers waited in open",
       &Counters::reader_wait_nanoseconds},
      {"reader_waits", "Opens that had to wait", &Counters::reader_waits},
      {"errors", "Reads that failed", &Counters::errors},
  };
  return kTable;
}

}  // namespace batchfs
