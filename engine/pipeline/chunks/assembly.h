#pragma once
// A batch, or a read of an array, while it is put together from chunks.
//
// A use is a chunk that the assembly needs; its parts are the boxes of the chunk that are copied,
// each to its place in the assembly's memory.

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/array/array.h"
#include "engine/array/shard_presence.h"
#include "engine/base/budget.h"
#include "engine/base/invariant.h"
#include "engine/base/short_dims.h"
#include "engine/dataset/converter.h"
#include "engine/pipeline/executor.h"
#include "engine/telemetry/trace.h"

namespace batchfs {

/// Its maker fills in the public members; from begin() on, uses are only counted down. Each is
/// completed exactly once.
class Assembly {
 public:
  struct Part {
    ShortBox source;                       // chunk coordinates
    std::byte* out = nullptr;              // where its first element goes
    ShortDims strides;                     // bytes at `out`, one per array dimension
    const Converter* converter = nullptr;  // null: elements as they are in memory
    const Repeat* repeat = nullptr;        // more places at `out`, one of `repeats`; null: none

    /// Bytes of an element of an array at `out`.
    std::size_t result_itemsize(std::size_t itemsize) const {
      return converter != nullptr ? converter->result_itemsize() : itemsize;
    }
    /// Copies the values at `out` to their other places.
    void copy_to_repeats(std::size_t itemsize) const {
      if (repeat != nullptr)
        repeat_strided(source.shape, result_itemsize(itemsize), out, strides, *repeat);
    }
  };
  struct Use {
    std::shared_ptr<const Array> array;
    std::int64_t chunk = 0;  // linear number in the array's grid
    std::uint32_t first_part = 0, part_count = 0;
  };

  std::vector<Use> uses;
  std::vector<Part> parts;
  std::vector<Repeat> repeats;
  /// Owns the memory that the parts point into, and the converters.
  std::shared_ptr<void> memory;
  /// Decoded chunks may be found in `memory` by others as long as it lives (a batch; not a short
  /// read).
  bool shares_memory = false;
  /// Its chunks are decoded again later and fit into memory for good: they are kept where there is
  /// room.
  bool keeps_chunks = false;
  /// Also the parts of them that it does not take are used later.
  bool keeps_whole_chunks = false;
  /// Memory of the lists above.
  Budget::Reservation list_memory;
  std::uint64_t list_bytes() const {
    return uses.capacity() * sizeof(Use) + parts.capacity() * sizeof(Part) +
           repeats.capacity() * sizeof(Repeat);
  }
  /// Called once, when every use is complete, from any thread. Null exception: all bytes are
  /// written.
  std::function<void(std::exception_ptr)> finished;

  Trace::Batch of;  // for the trace

  std::atomic<Urgency> urgency{kReaderWaits};
  /// Chunks are fetched for it. Until it is started, it only takes its parts of chunks that are
  /// fetched for others.
  std::atomic<bool> started{true};
  /// No reader waits for it any more: chunks that only it needs are skipped.
  std::atomic<bool> cancelled{false};

  std::span<const Part> parts_of(const Use& use) const {
    return std::span(parts).subspan(use.first_part, use.part_count);
  }

  /// Memory that is reserved ahead for the chunks on their way here.
  void give_ahead(Budget::Reservation more) {
    const std::lock_guard lock(mutex_);
    ahead_.absorb(std::move(more));
  }
  /// Up to `bytes` of it.
  Budget::Reservation take_ahead(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    return ahead_.split(bytes);
  }

  /// To be called when a chunk of a sharded `array` is taken: from its shard, or as missing because
  /// the shard is. When the shard appeared in between, the assembly fails: a batch never mixes
  /// versions.
  void observe(const Array& array, std::int64_t shard, bool missing) {
    std::optional<Error> mixture;
    {
      const std::lock_guard lock(mutex_);
      mixture = shards_.observe(array, shard, missing);
      if (!mixture || error_) return;
      error_ = std::make_exception_ptr(*mixture);
    }
    if (mixed) mixed(*mixture);
  }
  /// Called when observe() finds a mixture, under no lock. Set before the first use can complete.
  std::function<void(const Error&)> mixed;

  /// One use is done, or failed.
  void complete(std::exception_ptr error) {
    if (error) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = error;
    }
    const std::int64_t left = pending_.fetch_sub(1, std::memory_order_acq_rel) - 1;
    check_invariant(left >= 0, "each use of a chunk is completed once");
    if (left == 0) {
      // Taken out first: its captures may hold this assembly.
      const auto done = std::move(finished);
      done(error_);
    }
  }

  /// To be called once, before the first use can complete.
  void begin() {
    pending_.store(static_cast<std::int64_t>(uses.size()), std::memory_order_release);
  }

 private:
  std::atomic<std::int64_t> pending_{0};
  /// Guards the members below. No other lock is taken with it held.
  std::mutex mutex_;
  Budget::Reservation ahead_;
  std::exception_ptr error_;
  ShardPresence shards_;
};

}  // namespace batchfs
