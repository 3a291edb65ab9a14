#include "engine/pipeline/batches/reclaimer.h"
#include "engine/view/samples/mask.h"

#include <utility>

namespace batchfs {

bool Reclaimer::release_kept() {
  if (files_.drop_spares() > 0) return true;
  BatchTable::Dropped dropped;
  return table_.drop_opened(dropped);
}

/// Drops no chunk with a known use, and leaves room for the chunks that are to stay.
Budget::Reservation Reclaimer::reserve_sparing(std::uint64_t bytes) {
  for (;;) {
    budget_.set_outside(files_.mapped_by_others() + files_.spare_bytes());
    if (auto reservation = budget_.try_reserve(bytes + cache_.missing_bytes()))
      return reservation.split(bytes);
    if (release_kept()) continue;
    if (!cache_.evict_one(ChunkCache::kSpared)) return {};
  }
}

Budget::Reservation Reclaimer::reserve(std::uint64_t bytes, bool waited, std::uint64_t keep_until) {
  if (auto reservation = reserve_sparing(bytes)) return reservation;
  for (;;) {
    budget_.set_outside(files_.mapped_by_others() + files_.spare_bytes());
    if (auto reservation = budget_.try_reserve(bytes)) return reservation;
    if (cache_.evict_one(keep_until)) continue;
    BatchTable::Dropped dropped;
    if (!waited) return {};
    if (table_.drop_any_opened(dropped)) continue;
    if (!table_.drop_least_urgent(dropped)) return {};
    const bool is_assembled = !dropped.cancelled.empty();
    release(std::move(dropped));
    if (is_assembled) return {};  // its memory comes back soon
  }
}

void Reclaimer::release(BatchTable::Dropped dropped) {
  for (const auto& assembly : dropped.cancelled) scheduler_.reprioritize(assembly);
}

void Reclaimer::release_all() {
  release(table_.drop_all());
  while (cache_.evict_one()) {
  }
}

}  // namespace batchfs
