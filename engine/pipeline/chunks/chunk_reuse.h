#pragma once
// How often chunks are decoded, where batches that are read in order share them.
//
// The engine has two ways to decode a chunk once for several batches. It keeps the chunk until its
// next use, if the chunks that are used until then have room in kept_memory(). Or batches that are
// made ahead take their parts while it is decoded; as many batches join as have room in
// joined_memory(). The engine (look_ahead.h, read_ahead.h) and its figures in `plan` take the
// shares of the memory from here.

#include <algorithm>
#include <cstdint>
#include <list>
#include <unordered_map>

#include "engine/pipeline/chunks/chunk_cache.h"

namespace batchfs {

/// Bytes of the budget for chunks whose next use is known.
inline std::uint64_t kept_memory(std::uint64_t budget) { return budget / 2; }

/// Bytes of the budget for batches that join chunks in progress: chunks in flight from a remote
/// store take memory too.
inline std::uint64_t joined_memory(std::uint64_t budget, bool is_local) {
  return is_local ? budget / 4 * 3 : budget / 2;
}

/// Batches that may join, prefetched ones included. Fewer than are announced.
inline constexpr std::int64_t kMaxJoined = 256;

/// At least the batch that decodes the chunk.
inline std::int64_t joined_batches(std::uint64_t memory, std::uint64_t batch_bytes) {
  return std::clamp<std::int64_t>(
      static_cast<std::int64_t>(memory / std::max<std::uint64_t>(batch_bytes, 1)), 1, kMaxJoined);
}

/// Follows the batches of one reader. Not thread-safe.
class ChunkReuse {
 public:
  /// `kept` bytes of chunks stay; `joined` batches take their parts of a chunk when it is decoded.
  ChunkReuse(double kept, std::int64_t joined) : kept_(kept), joined_(joined) {}

  /// The current batch uses the chunk, of this many bytes decoded, which take `memory` bytes.
  void use(const ChunkKey& chunk, double bytes, double memory);
  void next_batch() { ++batch_; }

  /// Bytes decoded so far, in the way that decodes less.
  double decoded() const { return std::min(decoded_kept_, decoded_joined_); }

 private:
  struct Chunk {
    ChunkKey key;
    double memory = 0;
  };
  const double kept_;
  const std::int64_t joined_;
  std::int64_t batch_ = 0;
  std::list<Chunk> order_;  // the least recently used first
  std::unordered_map<ChunkKey, std::list<Chunk>::iterator, ChunkKeyHash> here_;
  std::unordered_map<ChunkKey, std::int64_t, ChunkKeyHash> joined_until_;  // before this batch
  double memory_ = 0, decoded_kept_ = 0, decoded_joined_ = 0;
};

}  // namespace batchfs
