#pragma once
// The indexes of shards that were read, for the next chunk of the same shard; and, for a while,
// which objects do not exist.

#include <chrono>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "engine/codec/sharding.h"

namespace batchfs {

/// Thread-safe. The least recently used go first.
class ShardIndexCache {
 public:
  using Clock = std::chrono::steady_clock;
  /// `absence`: how long a missing object is remembered as missing.
  explicit ShardIndexCache(std::uint64_t most_bytes = 64 << 20,
                           Clock::duration absence = Clock::duration::max())
      : most_bytes_(most_bytes), absence_(absence) {}

  /// nullptr: the object is missing.
  using IndexPtr = std::shared_ptr<const ShardIndex>;

  /// nullopt: the object of this key has not been looked at, or long ago.
  std::optional<IndexPtr> find(const std::string& key);
  /// Keeps the first index that comes for a key, which takes the place of an absence.
  void insert(const std::string& key, IndexPtr index);

 private:
  struct Entry {
    std::string key;
    IndexPtr index;
    Clock::time_point since;
  };
  using Indexes = std::list<Entry>;
  static std::uint64_t cost(const IndexPtr& index) { return 256 + (index ? index->bytes() : 0); }
  void erase(Indexes::iterator entry);

  const std::uint64_t most_bytes_;
  const Clock::duration absence_;
  std::mutex mutex_;  // guards the fields below
  Indexes order_;     // most recently used first
  std::unordered_map<std::string, Indexes::iterator> by_key_;
  std::uint64_t bytes_ = 0;
};

}  // namespace batchfs
