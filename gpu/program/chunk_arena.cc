#include "gpu/program/chunk_arena.h"

#include <algorithm>

namespace batchfs::gpu {

namespace {

constexpr std::uint64_t kArenaAlignment = 256;
/// Ranks order chunks; the largest is evicted first. A known next use ranks by its batch; without
/// one the rank is above every batch, and larger the longer ago the chunk was used.
constexpr std::uint64_t kNoKnownUse = UINT64_MAX;

}  // namespace

ChunkArena::ChunkArena(std::uint64_t size) {
  free_[0] = {size / kArenaAlignment * kArenaAlignment, {}};
}

std::shared_ptr<DecodedChunk> ChunkArena::find(const Key& key) const {
  const auto it = entries_.find(key);
  return it == entries_.end() ? nullptr : it->second.chunk;
}

/// Adds to `to` the programs of `from` that have not ended.
void ChunkArena::merge(ProgramNumbers& to, const ProgramNumbers& from) const {
  for (const std::uint64_t number : from) {
    if (number <= ended_) continue;
    const auto at = std::lower_bound(to.begin(), to.end(), number);
    if (at == to.end() || *at != number) to.insert(at, number);
  }
}

std::optional<std::uint64_t> ChunkArena::allocate(std::uint64_t size, ProgramNumbers& after) {
  size =
      std::max<std::uint64_t>(1, (size + kArenaAlignment - 1) / kArenaAlignment) * kArenaAlignment;
  for (;;) {
    for (auto it = free_.begin(); it != free_.end(); ++it) {
      if (it->second.size < size) continue;
      const std::uint64_t offset = it->first;
      Free rest = std::move(it->second);
      free_.erase(it);
      merge(after, rest.after);
      rest.size -= size;
      if (rest.size > 0) free_.emplace(offset + size, std::move(rest));
      return offset;
    }
    const auto victim = std::find_if(
        by_rank_.rbegin(), by_rank_.rend(),
        [this](const auto& ranked) { return !entries_.at(ranked.second).chunk->pinned; });
    if (victim == by_rank_.rend()) return std::nullopt;
    drop(Key(victim->second));
    ++evictions_;
  }
}

void ChunkArena::release(std::uint64_t offset, std::uint64_t size, ProgramNumbers after) {
  auto next = free_.lower_bound(offset);
  if (next != free_.end() && offset + size == next->first) {
    size += next->second.size;
    merge(after, next->second.after);
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second.size == offset) {
      previous->second.size += size;
      merge(previous->second.after, after);
      return;
    }
  }
  free_.emplace(offset, Free{size, std::move(after)});
}

void ChunkArena::insert(const Key& key, std::shared_ptr<DecodedChunk> chunk) {
  drop(key);
  ++touched_;
  chunk->size = std::max<std::uint64_t>(1, (chunk->size + kArenaAlignment - 1) / kArenaAlignment) *
                kArenaAlignment;
  const std::uint64_t rank = rank_of(key);
  by_rank_.insert({rank, key});
  entries_[key] = {std::move(chunk), rank};
}

void ChunkArena::drop(const Key& key) {
  const auto it = entries_.find(key);
  if (it == entries_.end()) return;
  const DecodedChunk& chunk = *it->second.chunk;
  ProgramNumbers after;
  merge(after, chunk.readers);
  merge(after, {chunk.decoded_by});
  release(chunk.offset, chunk.size, std::move(after));
  by_rank_.erase({it->second.rank, key});
  entries_.erase(it);
}

void ChunkArena::add_reader(DecodedChunk& chunk, std::uint64_t number) const {
  std::erase_if(chunk.readers, [this](std::uint64_t reader) { return reader <= ended_; });
  merge(chunk.readers, {number});
}

std::uint64_t ChunkArena::rank_of(const Key& key) const {
  const auto it = uses_.find(key);
  return it != uses_.end() ? it->second.front() : kNoKnownUse - touched_;
}

void ChunkArena::rerank(const Key& key) {
  const auto it = entries_.find(key);
  if (it == entries_.end()) return;
  by_rank_.erase({it->second.rank, key});
  it->second.rank = rank_of(key);
  by_rank_.insert({it->second.rank, key});
}

void ChunkArena::add_use(const Key& key, std::uint64_t batch) {
  uses_[key].push_back(batch);
  rerank(key);
}

void ChunkArena::remove_use(const Key& key, std::uint64_t batch) {
  const auto it = uses_.find(key);
  if (it == uses_.end()) return;
  std::erase(it->second, batch);
  if (it->second.empty()) uses_.erase(it);
  ++touched_;
  rerank(key);
}

}  // namespace batchfs::gpu
