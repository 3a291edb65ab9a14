#pragma once
// How often chunks are decoded, where batches that are read in order share them.
//
// The engine has two ways to decode a chunk once for several batches. It keeps the chunk until its
// next use, if the chunks that are used until then have room in kept_memory(). Or batches that are
// made ahead take their parts while it is decoded; as many batches join as have room in
// joined_memory(), prefetched ones included. The engine (look_ahead.h, read_ahead.h) and `plan`
// take the shares of the memory from here. Which batches are made ahead when a chunk is decoded
// depends on time: the bounds of `plan` follow an epoch at the worst and at the best.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "engine/pipeline/chunks/chunk_cache.h"

namespace batchfs {

/// Bytes of the budget for chunks whose next use is known.
inline std::uint64_t kept_memory(std::uint64_t budget) { return budget / 2; }

/// Bytes of the budget for batches that join chunks in progress: chunks in flight from a remote
/// store take memory too.
inline std::uint64_t joined_memory(std::uint64_t budget, bool is_local) {
  return is_local ? budget / 4 * 3 : budget / 2;
}

/// Bytes of the budget for prefetched batches of this size. Half of the memory is for chunks and for
/// batches that readers hold. Where no request takes long, a reader that waits waits for the
/// processors: a longer prefetch would only take memory, and fresh memory costs time.
inline std::uint64_t prefetch_memory(std::uint64_t budget, std::uint64_t batch_bytes,
                                     bool is_local) {
  constexpr std::uint64_t kMostLocal = 256 << 20;
  return is_local ? std::min(budget / 2, std::max(kMostLocal, 2 * batch_bytes)) : budget / 2;
}

/// Batches that may join, prefetched ones included. Fewer than are announced.
inline constexpr std::int64_t kMaxJoined = 256;

/// At least the batch that decodes the chunk.
inline std::int64_t joined_batches(std::uint64_t memory, std::uint64_t batch_bytes) {
  return std::clamp<std::int64_t>(
      static_cast<std::int64_t>(memory / std::max<std::uint64_t>(batch_bytes, 1)), 1, kMaxJoined);
}

/// How the batches of an epoch use chunks, in the order in which one reader reads them. Not
/// thread-safe.
class ChunkReuse {
 public:
  struct Use {
    ChunkKey chunk;
    double memory =
        0;  // that it takes while it stays; 0: it never does, and joined uses may read apart
    double decoded = 0;  // bytes that a decoding decodes
    double more = 0;     // at most so many more
    /// Bytes that are decoded for this use alone, at least, of a chunk whose parts can be decoded;
    /// below 0: the whole is.
    double part = -1;
  };
  /// The current batch uses the chunk.
  void use(const Use& use);
  void next_batch() { ++batches_; }
  std::size_t uses() const { return uses_.size(); }

  struct Rules {
    double kept = 0;          // bytes of chunks that stay
    std::int64_t joined = 1;  // batches that take their parts of a chunk when it is decoded or used
    /// A chunk stays only if its next use is at most so many batches, and so many uses, later.
    std::int64_t known_batches = INT64_MAX, known_uses = INT64_MAX;
  };
  struct Decoded {
    double least = 0, likely = 0, most = 0;  // bytes
  };
  /// The chunks with the soonest next use stay.
  Decoded decoded(const Rules& rules) const;

  /// How a batch gets a chunk.
  struct Supply {
    enum class Kind {
      decoded,  // for this batch
      joined,   // its part was taken when an earlier batch decoded the chunk, or found it
      kept,     // decoded for an earlier batch, and still in memory
    };
    ChunkKey chunk;
    Kind kind = Kind::decoded;
    std::int64_t decoded_by = 0;  // the batch that it was decoded for
    std::size_t later = 0;        // uses by the batches for which it stays after this one
  };
  /// The sources of the chunks of one batch, in the order of its uses, by the likely case.
  std::vector<Supply> supplies(const Rules& rules, std::int64_t batch) const;

 private:
  static constexpr std::int64_t kNone = INT64_MAX;
  struct Step {
    std::int64_t batch = 0, next = kNone;  // next: the use of this chunk that follows, in steps_
    std::uint32_t chunk = 0;
    double decoded = 0, more = 0, part = 0;
  };
  /// Called with the number of the use, its source and the use until which the chunk then stays.
  using OnUse = std::function<void(std::int64_t use, Supply::Kind kind, std::int64_t decoded_by,
                                   std::int64_t stays)>;
  Decoded follow(const Rules& rules, const OnUse& on_use) const;

  std::int64_t batches_ = 0;
  std::vector<Step> uses_;
  std::vector<ChunkKey> keys_;      // of each chunk
  std::vector<double> memory_;      // of each chunk
  std::vector<std::int64_t> last_;  // use of each chunk
  std::unordered_map<ChunkKey, std::uint32_t, ChunkKeyHash> chunks_;
};

}  // namespace batchfs
