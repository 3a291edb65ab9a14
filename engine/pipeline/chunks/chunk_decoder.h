#pragma once
// Decodes a chunk to where its consumers want their parts of it, in memory that the budget grants.
//
// A consumer is a use of a chunk by an assembly (assembly.h): a batch, or a read of an array.

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include "engine/base/budget.h"
#include "engine/pipeline/chunks/assembly.h"
#include "engine/pipeline/chunks/chunk_cache.h"
#include "engine/telemetry/counters.h"
#include "engine/telemetry/trace.h"

namespace batchfs {

/// A use of a chunk, with its assembly.
struct ChunkConsumer {
  std::shared_ptr<Assembly> assembly;
  const Assembly::Use* use;
  /// The part still missing, in chunk coordinates: at first all that needed() returns.
  Box missing;
};

/// The first one's, for the trace.
Trace::Batch batch_of(std::span<const ChunkConsumer> consumers);

/// Copies the elements that `consumer` misses and the chunk has to its assembly. Fails the assembly
/// when the chunk's shard appeared in between.
void gather(const ChunkConsumer& consumer, const DecodedChunk& chunk);

/// Thread-safe.
class ChunkDecoder {
 public:
  /// `release_batch`: see ChunkScheduler.
  ChunkDecoder(Budget& budget, ChunkCache& cache, Counters& counters, Trace& trace,
               std::function<bool()> release_batch = {})
      : budget_(budget),
        cache_(cache),
        counters_(counters),
        trace_(trace),
        release_batch_(std::move(release_batch)) {}

  struct Result {
    std::optional<DecodedChunk> chunk;  // when it may be shared
    std::uint64_t cache_bytes = 0;      // 0: it lies in a batch
    bool keep = true;
  };
  /// Decodes `box` of chunk `number`, which covers what all `consumers` need, from `stored` or,
  /// where that is null, from the local store, and delivers it to them: decoded straight into the
  /// destination of one of them where possible. Where the budget is used up, one chunk at a time is
  /// decoded beyond it, since work that was begun must end; as check_size() allows. `others` wait
  /// for other parts of the chunk: they get the decoded part of these where that shrinks what they
  /// miss. Parts for others are not kept for later uses, which hardly need the same. Throws as
  /// Array::decode() and load() do.
  Result decode(const Array& array, std::int64_t number, const Box& box,
                std::span<const ChunkConsumer> consumers, const KeptChunk* stored,
                std::span<ChunkConsumer> others = {});

  /// Memory for a chunk: reserved ahead by its consumers, free, of batches that are only kept, or
  /// evicted from the cache.
  /// May be less than `bytes`.
  Budget::Reservation find_memory(std::uint64_t bytes, std::span<const ChunkConsumer> consumers);
  /// Throws no_memory when decoding into `bytes` of memory would go too far beyond the whole
  /// budget.
  void check_size(std::uint64_t bytes) const;
  /// `memory` grown to `bytes`, beyond the budget where it must be, or shrunk.
  void adjust(Budget::Reservation& memory, std::uint64_t bytes,
              std::span<const ChunkConsumer> consumers);

 private:
  /// Releases some memory, but no chunk that is used up to this time. False when there is none.
  bool release_some(std::uint64_t keep_until);
  /// Memory in which the chunk is kept for its next use, where it has or may have one: free memory,
  /// or that of batches that are only kept or of chunks that are used later. Else empty: the chunk
  /// is decoded straight into a batch.
  Budget::Reservation reserve_to_keep(const Array& array, std::int64_t number, std::uint64_t bytes,
                                      std::span<const ChunkConsumer> consumers);

  Budget& budget_;
  ChunkCache& cache_;
  Counters& counters_;
  Trace& trace_;
  const std::function<bool()> release_batch_;
  /// Held while a chunk is decoded beyond the budget, so that one is at a time. Lock order: before
  /// ChunkCache's, BatchTable's and the stores'; nothing else is taken with it held.
  std::mutex beyond_budget_;
};

}  // namespace batchfs
