#pragma once
// Arrays whose chunks all stay in memory, decoded.
//
// A view that takes its chunks again and again decodes each once where memory holds all of them and
// some batches. Batches that are made ahead must leave room for these chunks, also for those that
// have not come yet: else a long prefetch drives them out, and they are decoded again.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "engine/pipeline/chunks/chunk_cache.h"
#include "engine/view/view.h"

namespace batchfs {

/// Thread-safe.
class KeptArrays {
 public:
  /// A view of which no batch was begun while this many others were opened is not counted any more.
  static constexpr std::uint64_t kForgotten = 256;

  /// `memory`: bytes of which ChunkCache::can_keep_all() allots the chunks a share.
  KeptArrays(ChunkCache& cache, std::uint64_t memory) : cache_(cache), memory_(memory) {}

  /// Memory of the chunks, decoded, that the view takes and that are worth keeping.
  double bytes_of(const std::shared_ptr<const View>& view);
  /// A batch of the view, which takes its chunks again and again, begins at the time `now`, a count
  /// of batches opened. Returns true if its chunks all stay, beside those of the views before it.
  bool keep(const std::shared_ptr<const View>& view, std::uint64_t now);

  /// Are there such arrays now?
  bool keeps() const { return cache_.keeps_arrays(); }

  /// Forgets the views that `chosen` holds of, and those that are gone.
  void forget(const std::function<bool(const View&)>& chosen);

 private:
  struct Size {
    double taken = 0, whole = 0;  // memory of decoded chunks, in bytes
  };
  using Sizes = std::map<const Array*, Size>;  // of arrays that may be gone
  struct Entry {
    std::weak_ptr<const View> view{};
    Sizes arrays{};
    bool kept = false;
    std::uint64_t last_used = 0;
  };
  static double sum(const Sizes& arrays);
  static void add(const Sizes& more, Sizes& arrays);
  Entry& find(const std::shared_ptr<const View>& view);
  Sizes kept_arrays() const;
  void tell_cache();

  ChunkCache& cache_;
  const std::uint64_t memory_;
  /// Guards the members below. Lock order: before ChunkCache's.
  std::mutex mutex_;
  std::map<const View*, Entry> views_;
};

}  // namespace batchfs
