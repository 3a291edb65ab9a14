#include "engine/pipeline/prefetch/look_ahead.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "engine/dataset/dataset.h"
#include "engine/pipeline/chunks/chunk_reuse.h"
#include "engine/view/plan/batch_chunks.h"

namespace batchfs {

namespace {
/// Looking at batches of so many boxes takes long: batches farther ahead are left to later calls.
constexpr std::int64_t kManyBoxes = 1 << 14;
}  // namespace

bool LookAhead::look(const std::vector<Prefetcher::Ahead>& ahead, std::uint64_t now,
                     const std::function<bool(const BatchRequest&)>& is_made, std::int64_t most) {
  std::size_t known = 0;  // uses
  std::int64_t boxes = 0;
  bool all = true;
  for (const auto& [distance, request] : ahead) {
    const BatchKey key = request.key();
    {
      const std::lock_guard lock(mutex_);
      if (const auto it = uses_.find(key); it != uses_.end()) {
        known += it->second.chunks.size();
        continue;
      }
    }
    if (is_made(request)) continue;
    if (known > kUses) break;
    if (most-- == 0) {
      all = boxes > kManyBoxes;
      break;
    }
    const std::uint64_t time = now + static_cast<std::uint64_t>(distance);
    Uses uses{std::max(time, ChunkCache::kBegun + 1), {}, request.view};
    boxes += for_each_chunk(
        *request.view, request.epoch, request.global_batch(),
        [&](std::uint32_t variable, std::int64_t chunk) {
          uses.chunks.push_back({request.view->variables()[variable]->array.get(), chunk});
        });
    known += uses.chunks.size();
    {
      const std::lock_guard lock(mutex_);
      const auto [it, inserted] = uses_.emplace(key, std::move(uses));
      if (!inserted) continue;
      for (const ChunkKey& chunk : it->second.chunks) cache_.add_use(chunk, it->second.time);
    }
    // Its reader may have opened it in the meantime: then nobody would forget these uses, and their
    // chunks would be kept in vain.
    if (is_made(request)) forget(key);
  }
  return drop_excess(now) || all;
}

/// A stream that jumped leaves uses that did not come when they were due: the oldest are dropped,
/// then the farthest ones. Returns whether any had to be: then more are not to be looked for, which
/// would take the place of others that are looked for again.
bool LookAhead::drop_excess(std::uint64_t now) {
  const std::lock_guard lock(mutex_);
  bool dropped = false;
  for (; uses_.size() > 4 * static_cast<std::size_t>(kBatches); dropped = true) {
    const auto [first, last] = std::minmax_element(
        uses_.begin(), uses_.end(),
        [](const auto& a, const auto& b) { return a.second.time < b.second.time; });
    erase(first->second.time < now ? first : last);
  }
  return dropped;
}

void LookAhead::begin(const BatchKey& batch) {
  const std::lock_guard lock(mutex_);
  const auto it = uses_.find(batch);
  if (it == uses_.end()) return;
  for (const ChunkKey& chunk : it->second.chunks) cache_.begin_use(chunk, it->second.time);
  it->second.time = ChunkCache::kBegun;
}

void LookAhead::forget(const BatchKey& batch) {
  const std::lock_guard lock(mutex_);
  if (const auto it = uses_.find(batch); it != uses_.end()) erase(it);
}

void LookAhead::forget_all() {
  const std::lock_guard lock(mutex_);
  while (!uses_.empty()) erase(uses_.begin());
}

void LookAhead::forget_views(const std::function<bool(const View&)>& chosen) {
  const std::lock_guard lock(mutex_);
  for (auto it = uses_.begin(); it != uses_.end();) {
    const auto next = std::next(it);
    if (chosen(*it->second.view)) erase(it);
    it = next;
  }
}

/// Called with mutex_ held.
void LookAhead::erase(AllUses::iterator it) {
  for (const ChunkKey& chunk : it->second.chunks) cache_.remove_use(chunk, it->second.time);
  uses_.erase(it);
}

void LookAhead::find_horizon() {
  const std::lock_guard lock(mutex_);
  std::vector<const Uses*> order;
  for (const auto& [key, uses] : uses_) order.push_back(&uses);
  std::sort(order.begin(), order.end(),
            [](const Uses* a, const Uses* b) { return a->time < b->time; });
  std::unordered_set<ChunkKey, ChunkKeyHash> distinct;
  std::unordered_set<const Array*> arrays;
  const std::set<const Array*> kept = cache_.kept_arrays();  // their chunks all have room
  std::uint64_t bytes = 0, used = 0, horizon = UINT64_MAX;
  double all = 0;  // bytes of all chunks of these arrays; may be more than an integer holds
  std::size_t count = 0;
  for (const Uses* uses : order) {
    for (const ChunkKey& chunk : uses->chunks) {
      used += chunk.array->chunk_bytes();
      if (kept.contains(chunk.array)) continue;
      ++count;
      if (distinct.insert(chunk).second) {
        bytes += chunk.array->chunk_bytes();
        if (arrays.insert(chunk.array).second)
          all += static_cast<double>(chunk.array->chunk_bytes()) *
                 static_cast<double>(chunk.array->grid().chunk_count());
      }
    }
    if (bytes > kept_memory(memory_)) horizon = std::min(horizon, uses->time);
  }
  cache_.age_pressure();
  cache_.set_horizon(horizon, ChunkCache::can_keep_all(all, memory_));
  chunk_bytes_of_a_batch_ = used / std::max<std::uint64_t>(order.size(), 1);
  // Once batches join chunks on their way, those that are left to look at share fewer.
  const std::size_t enough = shares_beyond_memory_ ? 11 : 15;
  shares_beyond_memory_ = horizon != UINT64_MAX && count * 10 > distinct.size() * enough;
}

}  // namespace batchfs
