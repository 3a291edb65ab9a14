#pragma once
// Memory for batches, and which cached data to drop to get it.
//
// Reclaimed in this order: files of the hand-off that are kept for reuse, batches that were opened
// and are kept for other readers, cached chunks by farthest next use; and, for a reader that waits,
// batches whose other files may still be opened, and those that nobody has opened yet. As long as
// that suffices, room is left for the chunks that are to stay (kept_arrays.h) and are not decoded
// yet.

#include <cstdint>

#include "engine/base/budget.h"
#include "engine/pipeline/batches/batch_table.h"
#include "engine/pipeline/chunks/chunk_cache.h"
#include "engine/pipeline/chunks/chunk_scheduler.h"
#include "engine/pipeline/memory_file.h"
#include "engine/view/samples/mask.h"

namespace batchfs {

/// Thread-safe: it has no state of its own. Precondition: called with no lock held.
class Reclaimer {
 public:
  Reclaimer(Budget& budget, const MemoryFiles& files, BatchTable& table, ChunkCache& cache,
            ChunkScheduler& scheduler)
      : budget_(budget), files_(files), table_(table), cache_(cache), scheduler_(scheduler) {}

  /// For a reader that waits. Nothing when readers hold the memory, or work that will end.
  Budget::Reservation reserve_for_reader(std::uint64_t bytes) { return reserve(bytes, true, 0); }
  /// For a prefetch: chunks that are used up to the time `keep_until` are worth more.
  Budget::Reservation reserve_for_prefetch(std::uint64_t bytes, std::uint64_t keep_until) {
    return reserve(bytes, false, keep_until);
  }
  /// For a prefetch that does not keep a reader from waiting: from free memory, and from chunks
  /// that are not known to be used again. Nothing while such chunks lack memory.
  Budget::Reservation reserve_spare(std::uint64_t bytes) {
    return cache_.is_pressed() ? Budget::Reservation() : reserve_sparing(bytes);
  }
  /// Releases a file that is kept for reuse, or a batch that was opened and is kept for other
  /// readers. False when there is none.
  bool release_kept();
  /// Drops everything kept that no reader waits for.
  void release_all();
  /// Releases dropped records, and notifies the scheduler of those that it still works for.
  void release(BatchTable::Dropped dropped);

 private:
  Budget::Reservation reserve_sparing(std::uint64_t bytes);
  Budget::Reservation reserve(std::uint64_t bytes, bool waited, std::uint64_t keep_until);

  Budget& budget_;
  const MemoryFiles& files_;
  BatchTable& table_;
  ChunkCache& cache_;
  ChunkScheduler& scheduler_;
};

}  // namespace batchfs
