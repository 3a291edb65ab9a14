#pragma once
// Where the stored bytes of an array's chunks lie: in an object of their own, or at the place in
// the index of their shard. An index is read once and kept: the store makes sure that a shard that
// changes is not read any more.
//
// An object that does not exist may appear. In a local store it is looked for each time. Elsewhere
// it is taken for missing for five seconds after such an answer: the chunks of a missing shard
// do not cost a request each.

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "engine/array/array_presence.h"
#include "engine/array/encoded_chunk.h"
#include "engine/array/shard_index_cache.h"
#include "engine/codec/sharding.h"
#include "engine/store/store.h"
#include "engine/zarr/array_metadata.h"

namespace batchfs {

/// Thread-safe. Outlives its requests.
class ChunkLocator {
 public:
  /// `shards` is null where each chunk is an object.
  ChunkLocator(std::shared_ptr<Store> store, std::shared_ptr<const ArrayMetadata> metadata,
               std::shared_ptr<const ShardLayout> shards);

  bool is_sharded() const { return shards_ != nullptr; }

  /// The object of a chunk; of a shard, in an array of shards.
  std::string object_key(const Dims& chunk) const;

  struct Location {
    std::optional<ChunkPlace> place;  // nullopt: the chunk is missing
    bool object_missing = false;      // since its object is
  };
  /// An object of its own is not looked at: it may still be missing.
  using Outcome = std::variant<Location, std::exception_ptr>;
  /// `chunk` counts the chunks that can be read alone. `done` is called once, from any thread;
  /// where the index is known or the store is local, before this returns. Errors: those of reading
  /// the index, corrupt for a wrong index, stale for a shard that changed or was removed. For a
  /// missing object the array's presence is confirmed.
  void locate(const Dims& chunk, std::function<void(Outcome)> done) const;
  /// The same, blocking. Only for a local store, which answers at once.
  Location locate_local(const Dims& chunk) const;

  /// Confirms that a missing object means fill values, and remembers it; `done` as for locate().
  void confirm_missing(const std::string& key, std::function<void(std::exception_ptr)> done) const;

  /// Throws stale unless the array is still in its store, unchanged. Blocks; not for a store's
  /// callback.
  void confirm_array() const { presence_->confirm(); }
  /// The array's, after locate().
  ArrayPresence& presence() const { return *presence_; }

 private:
  const std::shared_ptr<Store> store_;
  const std::shared_ptr<const ArrayMetadata> metadata_;
  const std::shared_ptr<const ShardLayout> shards_;
  const std::shared_ptr<ArrayPresence> presence_;
  mutable ShardIndexCache indexes_;
};

}  // namespace batchfs
