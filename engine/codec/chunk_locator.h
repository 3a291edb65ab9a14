#pragma once
// Where the stored bytes of an array's chunks lie: in an object of their own, or where the index of their shard says. An
// index is read once and kept.

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "engine/codec/encoded_chunk.h"
#include "engine/codec/shard_index_cache.h"
#include "engine/codec/sharding.h"
#include "engine/store/store.h"
#include "engine/zarr/array_metadata.h"

namespace batchfs {

/// Thread-safe. Outlives what it locates.
class ChunkLocator {
 public:
  /// `shards` is null where each chunk is an object.
  ChunkLocator(std::shared_ptr<Store> store, std::shared_ptr<const ArrayMetadata> metadata,
               std::shared_ptr<const ShardLayout> shards);

  bool is_sharded() const { return shards_ != nullptr; }

  /// The object of a chunk; of a shard, in an array of shards.
  std::string object_key(const Dims& chunk) const;

  /// nullopt: the chunk is missing. An object of its own is not looked at: it may be missing all the same.
  using Outcome = std::variant<std::optional<ChunkPlace>, std::exception_ptr>;
  /// `chunk` counts the chunks that can be read alone. `done` is called once, from any thread; where the index is known
  /// or the store is local, before this returns. Errors: what reading the index fails with, corrupt for a wrong index,
  /// stale for a shard that goes while it is read.
  void locate(const Dims& chunk, std::function<void(Outcome)> done) const;
  /// The same, blocking. Only for a local store, which answers at once.
  std::optional<ChunkPlace> locate_local(const Dims& chunk) const;

 private:
  const std::shared_ptr<Store> store_;
  const std::shared_ptr<const ArrayMetadata> metadata_;
  const std::shared_ptr<const ShardLayout> shards_;
  mutable ShardIndexCache indexes_;
};

}  // namespace batchfs
