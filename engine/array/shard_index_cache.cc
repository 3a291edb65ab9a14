#include "engine/array/shard_index_cache.h"

namespace batchfs {

void ShardIndexCache::erase(Indexes::iterator entry) {
  bytes_ -= cost(entry->index);
  by_key_.erase(entry->key);
  order_.erase(entry);
}

std::optional<ShardIndexCache::IndexPtr> ShardIndexCache::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto it = by_key_.find(key);
  if (it == by_key_.end()) return std::nullopt;
  if (it->second->index == nullptr && Clock::now() - it->second->since >= absence_) {
    erase(it->second);
    return std::nullopt;
  }
  order_.splice(order_.begin(), order_, it->second);
  return it->second->index;
}

void ShardIndexCache::insert(const std::string& key, IndexPtr index) {
  const std::lock_guard lock(mutex_);
  if (const auto it = by_key_.find(key); it != by_key_.end()) {
    const Entry& known = *it->second;
    if (known.index != nullptr || (index == nullptr && Clock::now() - known.since < absence_))
      return;
    erase(it->second);
  }
  bytes_ += cost(index);
  order_.push_front({key, std::move(index), Clock::now()});
  by_key_[key] = order_.begin();
  while (bytes_ > most_bytes_ && order_.size() > 1) erase(std::prev(order_.end()));
}

}  // namespace batchfs
