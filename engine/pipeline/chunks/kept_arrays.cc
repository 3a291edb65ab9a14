#include "engine/pipeline/chunks/kept_arrays.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "engine/view/rows/reached.h"
#include "engine/view/spec.h"

namespace batchfs {

KeepChoice choose_keeping(const View& view, std::int64_t epoch, std::int64_t global_batch,
                          const std::function<TakenParts()>& taken,
                          const std::function<double()>& all, const std::function<bool()>& keep) {
  if (epoch + 1 < view.spec().epochs) {
    const bool kept = keep();
    return {kept, kept};
  }
  const bool in_order = view.order() == nullptr ? view.components().empty()
                                                : view.order()->shuffle == Order::Shuffle::none;
  if (in_order) return {};
  // Batches like this one that hold all samples.
  const double batches =
      static_cast<double>(view.samples()) / static_cast<double>(view.sample_count(global_batch));
  const auto [parts, chunks] = taken();
  const double of_view = all();
  const bool kept = chunks * batches > of_view && keep();
  return {kept, kept && parts * batches > of_view};
}

double KeptArrays::sum(const Sizes& arrays) {
  return std::accumulate(arrays.begin(), arrays.end(), 0.0,
                         [](double all, const auto& array) { return all + array.second.taken; });
}

/// Adds those of another view, which may take the same chunks.
void KeptArrays::add(const Sizes& more, Sizes& arrays) {
  for (const auto& [array, size] : more) {
    Size& all = arrays[array];
    all.whole = size.whole;
    all.taken = std::min(all.taken + size.taken, size.whole);
  }
}

KeptArrays::Sizes KeptArrays::sizes_of(const View& view) {
  Sizes arrays;
  for (const auto& [array, bytes] : bytes_to_read(view)) {
    if (!ChunkCache::is_worth_keeping(*array)) continue;
    const std::uint64_t chunk = array->chunk_bytes();
    const auto memory = [chunk](double chunks) { return ChunkCache::memory_of_all(chunks, chunk); };
    arrays[array] = {memory(bytes / static_cast<double>(chunk)),
                     memory(static_cast<double>(array->grid().chunk_count()))};
  }
  return arrays;
}

/// Precondition: mutex_ is held.
KeptArrays::Entry& KeptArrays::find(const std::shared_ptr<const View>& view) {
  Entry& entry = views_[view.get()];
  if (!entry.view.expired()) return entry;
  // New, or of another view that was at its address.
  entry = {.view = view, .arrays = sizes_of(*view)};
  return entry;
}

double KeptArrays::bytes_of(const std::shared_ptr<const View>& view) {
  const std::lock_guard lock(mutex_);
  return sum(find(view).arrays);
}

/// Precondition: mutex_ is held.
KeptArrays::Sizes KeptArrays::kept_arrays() const {
  Sizes arrays;
  for (const auto& [view, entry] : views_)
    if (entry.kept) add(entry.arrays, arrays);
  return arrays;
}

/// Precondition: mutex_ is held.
void KeptArrays::tell_cache() {
  const Sizes kept = kept_arrays();
  std::set<const Array*> arrays;
  for (const auto& [array, size] : kept) arrays.insert(array);
  cache_.keep_arrays(std::move(arrays), static_cast<std::uint64_t>(sum(kept)));
}

bool KeptArrays::keep(const std::shared_ptr<const View>& view, std::uint64_t now) {
  const std::lock_guard lock(mutex_);
  find(view).last_used = now;
  // This view stays, also where `view` does not own it and so counts as gone.
  const std::size_t forgotten = std::erase_if(views_, [&view, now](const auto& each) {
    return each.first != view.get() &&
           (each.second.view.expired() || each.second.last_used + kForgotten < now);
  });
  Entry& entry = views_.at(view.get());
  if (!entry.kept) {
    Sizes together = kept_arrays();
    add(entry.arrays, together);
    entry.kept = ChunkCache::can_keep_all(sum(together), memory_);
    if (entry.kept || forgotten > 0) tell_cache();
  } else if (forgotten > 0) {
    tell_cache();
  }
  return entry.kept;
}

void KeptArrays::forget(const std::function<bool(const View&)>& chosen) {
  std::vector<std::shared_ptr<const View>> held;  // a view may end here, without the lock
  const std::lock_guard lock(mutex_);
  std::erase_if(views_, [&](const auto& each) {
    held.push_back(each.second.view.lock());
    return held.back() == nullptr || chosen(*held.back());
  });
  tell_cache();
}

}  // namespace batchfs
