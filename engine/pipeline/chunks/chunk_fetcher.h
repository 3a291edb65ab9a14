#pragma once
// Fetches chunks from stores that answer later.
//
// A fetch is a request for the stored bytes of a chunk, or for the pieces of them that a box needs.
// It has a reservation for these bytes, an estimate, which is made to fit when the chunk has
// arrived.

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <variant>
#include <vector>

#include "engine/base/budget.h"
#include "engine/pipeline/chunks/chunk_cache.h"
#include "engine/pipeline/chunks/chunk_decoder.h"
#include "engine/telemetry/counters.h"
#include "engine/telemetry/trace.h"

namespace batchfs {

/// Thread-safe; without a lock of its own.
class ChunkFetcher {
 public:
  ChunkFetcher(ChunkDecoder& decoder, Counters& counters, Trace& trace)
      : decoder_(decoder), counters_(counters), trace_(trace) {}

  struct Fetch {
    std::shared_ptr<const Array> array;
    std::int64_t chunk = 0;
    Box box;                               // chunk coordinates
    std::vector<ChunkConsumer> consumers;  // need parts of the box
    /// Pieces kept from earlier reads, taken over. May be null.
    std::shared_ptr<const KeptChunk> stored;
    Budget::Reservation memory;
    bool in_pieces = false;
    std::uint64_t began = Trace::now();
    std::variant<EncodedChunk, std::exception_ptr> outcome = {};  // when it has arrived
  };
  /// `arrived`: called once, from any thread, possibly the store's own, which must not be kept.
  void fetch(Fetch fetch, std::function<void(std::shared_ptr<Fetch>)> arrived);

  /// The chunk of a fetch that succeeded, with the memory that it takes. Counts it.
  std::shared_ptr<const KeptChunk> accept(Fetch& arrived);

 private:
  ChunkDecoder& decoder_;
  Counters& counters_;
  Trace& trace_;
};

}  // namespace batchfs
