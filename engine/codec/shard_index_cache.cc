#include "engine/codec/shard_index_cache.h"

namespace batchfs {

std::optional<ShardIndexCache::IndexPtr> ShardIndexCache::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto it = by_key_.find(key);
  if (it == by_key_.end()) return std::nullopt;
  order_.splice(order_.begin(), order_, it->second);
  return it->second->second;
}

void ShardIndexCache::insert(const std::string& key, IndexPtr index) {
  const std::lock_guard lock(mutex_);
  if (by_key_.contains(key)) return;
  bytes_ += cost(index);
  order_.emplace_front(key, std::move(index));
  by_key_[key] = order_.begin();
  while (bytes_ > most_bytes_ && order_.size() > 1) {
    bytes_ -= cost(order_.back().second);
    by_key_.erase(order_.back().first);
    order_.pop_back();
  }
}

}  // namespace batchfs
