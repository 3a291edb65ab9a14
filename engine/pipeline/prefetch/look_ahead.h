#pragma once
// Which chunks the batches beyond the prefetched ones will use, and when: the cache evicts by that.
//
// The prefetched batches of a stream are assembled ahead of its reader (prefetcher.h). A use is a
// chunk that a batch needs, at the time when the batch is due. Prefetched batches have submitted
// their uses to the scheduler. Batches farther ahead are only planned, and the cache knows their
// uses, until they are in progress themselves.

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/pipeline/chunks/chunk_cache.h"
#include "engine/pipeline/prefetch/prefetcher.h"

namespace batchfs {

/// Thread-safe.
class LookAhead {
 public:
  /// How far streams are looked ahead. Four times as many batches may be known.
  static constexpr std::int64_t kBatches = 320;
  /// Looking ends with the batch that brings a stream to this many uses.
  static constexpr std::size_t kUses = 4096;

  /// The chunks that are kept may take kept_memory() of `memory`, or all of it that can_keep_all()
  /// allows.
  LookAhead(ChunkCache& cache, std::uint64_t memory) : cache_(cache), memory_(memory) {}

  /// Adds the uses in the batches `ahead`, of one stream, whose reader is at time `now`, to the
  /// cache's plan. Batches for which `is_made` holds are passed over: they are in progress, ready
  /// or behind their reader. A batch may become so while it is planned: `is_made` is called again
  /// afterwards. Plans at most `most` batches. Returns true when all uses are known that it looks
  /// for, or as many as may be.
  /// Throws what planning throws.
  bool look(const std::vector<Prefetcher::Ahead>& ahead, std::uint64_t now,
            const std::function<bool(const BatchRequest&)>& is_made, std::int64_t most);

  /// The batch is about to be assembled: its uses are no longer ahead, and the chunks cached for
  /// them stay until forget(). To be called once is_made() holds for it.
  void begin(const BatchKey& batch);
  /// The batch has its chunks, or is over: removes its uses from the cache's plan.
  void forget(const BatchKey& batch);
  void forget_all();
  /// Forgets the batches of the views that `chosen` holds of.
  void forget_views(const std::function<bool(const View&)>& chosen);

  /// Finds how far the distinct chunks of the coming batches, but those of arrays that stay, fit
  /// into the memory, decoded, and passes that to the cache.
  void find_horizon();

  /// Bytes of the chunks that a coming batch uses, on average.
  std::uint64_t chunk_bytes_of_a_batch() const { return chunk_bytes_of_a_batch_; }

  /// Did find_horizon() see that they don't, and that batches share chunks?
  bool shares_beyond_memory() const { return shares_beyond_memory_; }

 private:
  struct Uses {
    std::uint64_t time;
    std::vector<ChunkKey> chunks;
    std::shared_ptr<const View> view;  // holds the chunks' arrays
  };
  using AllUses = std::map<BatchKey, Uses>;
  bool drop_excess(std::uint64_t now);
  void erase(AllUses::iterator it);

  ChunkCache& cache_;
  const std::uint64_t memory_;
  std::atomic<bool> shares_beyond_memory_ = false;
  std::atomic<std::uint64_t> chunk_bytes_of_a_batch_ = 0;

  /// Guards the members below; nothing is planned with it held. Lock order: before ChunkCache's.
  std::mutex mutex_;
  AllUses uses_;  // the uses passed to the cache
};

}  // namespace batchfs
