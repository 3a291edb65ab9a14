#pragma once
// Reads of arrays: values as they are stored, whatever views there are.
//
// A read is a box of an array, or a run of its elements in C order. It goes to memory of the
// caller, or into a file of its own for a reader that opens one chunk. Chunks are shared with
// batches through the scheduler and the cache.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "engine/array/array.h"
#include "engine/dataset/converter.h"
#include "engine/pipeline/batches/deliveries.h"
#include "engine/pipeline/batches/reclaimer.h"
#include "engine/pipeline/chunks/chunk_scheduler.h"
#include "engine/pipeline/memory/memory_queue.h"
#include "engine/pipeline/waits/waiters.h"

namespace batchfs {

/// Thread-safe. `done` is called once, from any thread, possibly before
/// the method returns. The ids are for Engine::cancel(); 0 when `done` was called already. Errors
/// go to `done`.
class ArrayReads {
 public:
  using ReadDone = std::function<void(std::exception_ptr)>;
  /// The consumer of the values: a reader; or the program itself, for a pass over the data, which
  /// has no deadline and does not count as a reader that was served.
  enum class Purpose { reader, scan };

  /// The parts of the engine that it works with, which outlive it. `on_read` is called as a read
  /// begins.
  struct Environment {
    Waiters& waiters;
    MemoryQueue& queue;
    Reclaimer& reclaimer;
    Budget& budget;
    const MemoryFiles& files;
    ChunkScheduler& scheduler;
    ChunkCache& cache;
    Deliveries& deliveries;
    std::function<void()> on_read;
  };
  /// `max_elements_bytes`: memory for reads of elements in progress, granted beyond the budget;
  /// others wait. One read may be larger.
  explicit ArrayReads(Environment environment, std::uint64_t max_elements_bytes = 32 << 20)
      : with_(std::move(environment)), max_elements_bytes_(max_elements_bytes) {}

  /// A box of an array, stored values in native byte order, after `header`, as a batch of one file.
  WaiterId open_box(const std::shared_ptr<const Array>& array, const Box& box, std::string header,
                    BatchDone done);

  /// Reads C-order elements [first, first + count) of an array, stored values in native byte order,
  /// to `out`. `memory` holds `out` alive, also after `done` was called with timed_out or
  /// interrupted. Chunks are kept in the cache for the next read.
  WaiterId read_elements(const std::shared_ptr<const Array>& array, std::int64_t first,
                         std::int64_t count, std::byte* out, std::shared_ptr<void> memory,
                         ReadDone done);
  /// Reads a box to `out`, with `strides` in bytes, converted when `converter` is not null.
  /// Otherwise like read_elements().
  WaiterId read_box(const std::shared_ptr<const Array>& array, const Box& box,
                    std::shared_ptr<const Converter> converter, std::byte* out, const Dims& strides,
                    std::shared_ptr<void> memory, ReadDone done, Purpose purpose = Purpose::reader);
  /// The same, and returns when nothing is written to `out` any more, which may be after its
  /// deadline. Throws the error of the read. Not for workers of the engine.
  void read_box(const std::shared_ptr<const Array>& array, const Box& box,
                std::shared_ptr<const Converter> converter, std::byte* out, const Dims& strides);

  /// Elements where they lie in a cached chunk. `memory` holds them alive.
  struct CachedRun {
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> memory;
  };
  /// C-order elements [first, first + count) of an array, which is not empty, as runs of cached
  /// chunks, in order: a read without a copy. Empty unless the chunks are cached and few runs make
  /// up the elements.
  std::vector<CachedRun> find_cached(const std::shared_ptr<const Array>& array, std::int64_t first,
                                     std::int64_t count);

  /// Likely to be read next: the chunks of elements [first, first + count).
  void read_ahead(const std::shared_ptr<const Array>& array, std::int64_t first,
                  std::int64_t count);

  /// Is a read with the scheduler?
  bool is_at_work() const { return under_way_ > 0; }

 private:
  WaiterId add_waiter(BatchDone done, const std::shared_ptr<Assembly>& assembly, Purpose purpose);
  void submit(WaiterId waiter, const std::shared_ptr<Assembly>& assembly,
              std::shared_ptr<Batch> batch, Purpose purpose, std::function<void()> ended);
  WaiterId start(const std::shared_ptr<Assembly>& assembly, Purpose purpose, ReadDone done,
                 std::function<void()> ended = nullptr);
  void end_elements(std::uint64_t bytes);

  const Environment with_;
  const std::uint64_t max_elements_bytes_;
  std::atomic<std::size_t> under_way_{0};

  struct Delayed {
    std::uint64_t bytes;
    std::function<void()> begin;
  };
  /// Guards the members below. No other lock is taken with it held.
  std::mutex mutex_;
  std::uint64_t elements_bytes_ = 0;  // of the buffers of reads of elements in progress
  std::deque<Delayed> delayed_;       // reads of elements that wait for the end of others
};

}  // namespace batchfs
