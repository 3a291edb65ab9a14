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

/// The bytes that a batch takes of its chunks that are worth keeping.
struct TakenParts {
  double parts = 0;   // what it takes of them
  double chunks = 0;  // memory of the whole chunks
};
/// Which chunks of a batch are kept as they are used again.
struct KeepChoice {
  bool chunks = false;
  bool whole = false;  // also the parts of them that the batch does not take are used later
};
/// Keeps chunks that the view takes again, in the next epoch or in this one, if they all fit into
/// memory. In order, the latter are soon after one another: batches take these chunks from each
/// other. `all` returns the memory of the chunks that the view takes, `keep` whether they all stay.
KeepChoice choose_keeping(const View& view, std::int64_t epoch, std::int64_t global_batch,
                          const std::function<TakenParts()>& taken,
                          const std::function<double()>& all, const std::function<bool()>& keep);

/// Thread-safe.
class KeptArrays {
 public:
  /// A view of which no batch was begun while this many others were opened is not counted any more.
  static constexpr std::uint64_t kForgotten = 256;

  /// `memory`: bytes of which ChunkCache::can_keep_all() allots the chunks a share.
  KeptArrays(ChunkCache& cache, std::uint64_t memory) : cache_(cache), memory_(memory) {}

  /// Memory of the chunks, decoded, that the view takes and that are worth keeping.
  static double bytes_of(const View& view) { return sum(sizes_of(view)); }
  /// The same, remembered.
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
  static Sizes sizes_of(const View& view);
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
