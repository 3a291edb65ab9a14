#pragma once
// An array as the verifying scan needs it: its grids and its codecs.

#include <atomic>
#include <memory>
#include <optional>

#include "engine/array/string_array.h"
#include "engine/codec/chain.h"
#include "engine/codec/sharding.h"
#include "engine/scan/verify.h"

namespace batchfs {

/// Immutable but for the counters.
struct VerifyForm {
  /// Throws not_supported for a target that cannot be verified: unsupported metadata, chunks that
  /// need more than `memory`.
  VerifyForm(const std::shared_ptr<Store>& store, const VerifyTarget& target, std::uint64_t memory);

  std::string chunk_name(const Dims& chunk) const;
  /// Bytes to reserve for decoding one stored chunk of this size.
  std::uint64_t memory_for(std::uint64_t stored) const;
  /// Inner chunks per shard, per dimension; ones without shards.
  Dims per_object() const;
  /// Selected chunks of an object that lie inside the array.
  std::uint64_t chunks_in(const Dims& object) const;

  std::shared_ptr<const ArrayMetadata> metadata;
  ChunkGrid grid;            // of chunks
  ChunkGrid objects;         // of stored objects: shards, or chunks
  ChunkSelection selection;  // of chunks
  ChunkSelection object_selection;
  bool selects_all = true;
  std::unique_ptr<const ShardLayout> shards;
  std::unique_ptr<const StringArray> strings;
  const CodecChain* chain = nullptr;  // of one chunk; null for strings

  std::atomic<std::uint64_t> found{0};    // chunks inside the array that the store has
  std::atomic<std::uint64_t> unknown{0};  // state unknown: their shard's index cannot be read

 private:
  std::unique_ptr<const CodecChain> own_chain_;
};

}  // namespace batchfs
