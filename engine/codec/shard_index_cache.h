#pragma once
// The indexes of shards that were read, for the next chunk of the same shard.

#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "engine/codec/sharding.h"

namespace batchfs {

/// Thread-safe. The least recently used go first.
class ShardIndexCache {
 public:
  explicit ShardIndexCache(std::uint64_t most_bytes = 64 << 20) : most_bytes_(most_bytes) {}

  /// nullptr: the shard is missing.
  using IndexPtr = std::shared_ptr<const ShardIndex>;

  /// nullopt: the shard of this key has not been looked at, or long ago.
  std::optional<IndexPtr> find(const std::string& key);
  /// Keeps the first one that comes for a key.
  void insert(const std::string& key, IndexPtr index);

 private:
  using Indexes = std::list<std::pair<std::string, IndexPtr>>;
  static std::uint64_t cost(const IndexPtr& index) { return 256 + (index ? index->bytes() : 0); }

  const std::uint64_t most_bytes_;
  std::mutex mutex_;
  Indexes order_;  // most recently used first
  std::unordered_map<std::string, Indexes::iterator> by_key_;
  std::uint64_t bytes_ = 0;
};

}  // namespace batchfs
