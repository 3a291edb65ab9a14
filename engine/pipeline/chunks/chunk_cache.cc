#include "engine/pipeline/chunks/chunk_cache.h"

#include <algorithm>

#include "engine/base/invariant.h"

namespace batchfs {

namespace {
// Ranks order entries for eviction, largest first. A known next use ranks by its time; without one
// the rank is above every time, larger the longer ago the entry was touched.
constexpr std::uint64_t kNoKnownUse = UINT64_MAX;

/// Chunks that a passing reader leaves behind.
constexpr std::uint64_t kPassingBytes = 128 << 20;
}  // namespace

std::uint64_t ChunkCache::rank_of(const ChunkKey& key) const {
  const auto it = uses_.find(key);
  if (it != uses_.end()) return *it->second.begin();
  return (kept_arrays_.contains(key.array) ? kSpared : kNoKnownUse) - touched_;
}

void ChunkCache::rerank(const ChunkKey& key) {
  const auto it = chunks_.find(key);
  if (it == chunks_.end()) return;
  by_rank_.erase({it->second.rank, &it->first});
  it->second.rank = rank_of(key);
  by_rank_.insert({it->second.rank, &it->first});
}

void ChunkCache::put(const ChunkKey& key, CachedChunk cached) {
  if (const auto old = chunks_.find(key); old != chunks_.end()) erase(old);
  if (cached.chunk.object_missing) cached.since = Clock::now();
  ++touched_;
  bytes_ += cached.bytes;
  if (kept_arrays_.contains(key.array)) kept_bytes_ += cached.bytes;
  const auto it = chunks_.emplace(key, std::move(cached)).first;
  it->second.rank = rank_of(key);
  by_rank_.insert({it->second.rank, &it->first});
  entries_ = chunks_.size();
}

void ChunkCache::erase(CachedChunks::iterator it) {
  by_rank_.erase({it->second.rank, &it->first});
  check_invariant(bytes_ >= it->second.bytes, "the cache counts the bytes of its chunks");
  bytes_ -= it->second.bytes;
  if (kept_arrays_.contains(it->first.array)) kept_bytes_ -= it->second.bytes;
  chunks_.erase(it);
  entries_ = chunks_.size();
}

std::optional<DecodedChunk> ChunkCache::find(const ChunkKey& key, const Box& need) {
  const std::lock_guard lock(mutex_);
  const auto it = chunks_.find(key);
  if (it == chunks_.end()) return std::nullopt;
  if (it->second.stored) return std::nullopt;
  if (is_outdated(it->second)) {
    erase(it);
    return std::nullopt;
  }
  DecodedChunk chunk = it->second.chunk;
  if (chunk.memory == nullptr) {
    chunk.memory = it->second.weak.lock();
    if (chunk.memory == nullptr) {  // the batch it lay in is gone
      erase(it);
      return std::nullopt;
    }
  }
  if (!contains(chunk.box, need)) return std::nullopt;
  ++touched_;
  rerank(key);
  counters_.chunk_cache_hits.fetch_add(1, std::memory_order_relaxed);
  return chunk;
}

void ChunkCache::insert(const ChunkKey& key, std::shared_ptr<const Array> array, DecodedChunk chunk,
                        std::uint64_t bytes, bool passing) {
  const std::lock_guard lock(mutex_);
  if (passing) {
    passing_.push_back({key, bytes});
    passing_bytes_ += bytes;
    while (passing_bytes_ > kPassingBytes && passing_.size() > 1) {
      const Passing oldest = passing_.front();
      passing_.pop_front();
      passing_bytes_ -= oldest.bytes;
      const auto it = chunks_.find(oldest.key);
      if (it != chunks_.end() && !uses_.contains(oldest.key)) erase(it);
    }
  }
  put(key, {std::move(array), std::move(chunk), {}, {}, bytes, 0});
}

void ChunkCache::insert_weak(const ChunkKey& key, std::shared_ptr<const Array> array,
                             DecodedChunk chunk) {
  const std::lock_guard lock(mutex_);
  while (!weak_keys_.empty()) {
    const auto it = chunks_.find(weak_keys_.front());
    if (it != chunks_.end() && it->second.bytes == 0) {
      if (!it->second.weak.expired()) break;
      erase(it);
    }
    weak_keys_.pop_front();
  }
  std::weak_ptr<const void> weak = chunk.memory;
  chunk.memory.reset();
  put(key, {std::move(array), std::move(chunk), std::move(weak), {}, 0, 0});
  weak_keys_.push_back(key);
}

bool ChunkCache::holds(const ChunkKey& key, const Box& need) const {
  const std::lock_guard lock(mutex_);
  const auto it = chunks_.find(key);
  if (it == chunks_.end()) return false;
  const CachedChunk& cached = it->second;
  if (is_outdated(cached)) return false;
  if (cached.stored)
    return cached.stored->encoded.pieces.empty() ||
           cached.array->holds(cached.stored->encoded, need);
  return contains(cached.chunk.box, need) && (cached.bytes > 0 || !cached.weak.expired());
}

std::shared_ptr<const KeptChunk> ChunkCache::find_stored(const ChunkKey& key) {
  const std::lock_guard lock(mutex_);
  const auto it = chunks_.find(key);
  if (it == chunks_.end() || !it->second.stored) return nullptr;
  ++touched_;
  rerank(key);
  counters_.chunk_cache_hits.fetch_add(1, std::memory_order_relaxed);
  return it->second.stored;
}

void ChunkCache::insert_stored(const ChunkKey& key, std::shared_ptr<const Array> array,
                               std::shared_ptr<const KeptChunk> chunk) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t bytes = chunk->encoded.held() + 1;  // a missing one too is something
  put(key, {std::move(array), {}, {}, std::move(chunk), bytes, 0});
}

std::size_t ChunkCache::uses(const ChunkKey& key) const {
  const std::lock_guard lock(mutex_);
  const auto it = uses_.find(key);
  if (it == uses_.end()) return 0;
  const auto first = it->second.upper_bound(kBegun);
  const auto past = it->second.upper_bound(horizon_.load(std::memory_order_relaxed));
  return static_cast<std::size_t>(std::distance(first, past));
}

std::optional<std::uint64_t> ChunkCache::next_use(const ChunkKey& key) const {
  const std::lock_guard lock(mutex_);
  const auto it = uses_.find(key);
  if (it == uses_.end()) return std::nullopt;
  const auto next = it->second.upper_bound(kBegun);
  if (next == it->second.end() || *next > horizon_.load(std::memory_order_relaxed))
    return std::nullopt;
  return *next;
}

void ChunkCache::add_use(const ChunkKey& key, std::uint64_t time) {
  const std::lock_guard lock(mutex_);
  uses_[key].insert(time);
  rerank(key);
}

void ChunkCache::begin_use(const ChunkKey& key, std::uint64_t time) {
  const std::lock_guard lock(mutex_);
  erase_use(key, time);
  uses_[key].insert(kBegun);
  rerank(key);
}

void ChunkCache::remove_use(const ChunkKey& key, std::uint64_t time) {
  const std::lock_guard lock(mutex_);
  erase_use(key, time);
  rerank(key);
}

void ChunkCache::erase_use(const ChunkKey& key, std::uint64_t time) {
  const auto it = uses_.find(key);
  if (it == uses_.end()) return;
  if (const auto use = it->second.find(time); use != it->second.end()) it->second.erase(use);
  if (it->second.empty()) uses_.erase(it);
}

bool ChunkCache::evict_one(std::uint64_t keep_until) {
  const std::lock_guard lock(mutex_);
  while (!by_rank_.empty()) {
    const auto last = std::prev(by_rank_.end());
    if (last->first <= keep_until) return false;
    const auto it = chunks_.find(*last->second);
    const bool frees = it->second.bytes > 0;
    if (frees && uses_.contains(it->first)) press();
    erase(it);
    if (frees) {
      counters_.chunk_cache_evictions.fetch_add(1, std::memory_order_relaxed);
      return true;
    }
    // A weak entry frees nothing; continue.
  }
  return false;
}

void ChunkCache::keep_arrays(std::set<const Array*> arrays, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  kept_arrays_ = std::move(arrays);
  kept_total_ = bytes;
  kept_bytes_ = 0;
  by_rank_.clear();
  for (auto& [key, cached] : chunks_) {
    if (kept_arrays_.contains(key.array)) kept_bytes_ += cached.bytes;
    cached.rank = rank_of(key);
    by_rank_.insert({cached.rank, &key});
  }
}

std::uint64_t ChunkCache::missing_bytes() const {
  const std::lock_guard lock(mutex_);
  return kept_total_ - std::min(kept_total_, kept_bytes_);
}

bool ChunkCache::keeps_arrays() const {
  const std::lock_guard lock(mutex_);
  return kept_total_ > 0;
}

std::set<const Array*> ChunkCache::kept_arrays() const {
  const std::lock_guard lock(mutex_);
  return kept_arrays_;
}

void ChunkCache::forget(const Store& store) {
  const std::lock_guard lock(mutex_);
  for (auto it = chunks_.begin(); it != chunks_.end();) {
    const auto next = std::next(it);
    if (&it->second.array->store() == &store) erase(it);
    it = next;
  }
}

std::uint64_t ChunkCache::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace batchfs
