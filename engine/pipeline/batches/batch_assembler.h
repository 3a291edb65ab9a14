#pragma once
// Assembles batches: from a record of the table to a finished batch in the hands of its waiters.
//
// A batch's layout lists the files that it consists of; its memory is reserved; the view's plan
// maps parts of chunks to their destinations. The list of these uses is the batch's assembly, which
// the scheduler fills. When the last chunk has arrived, the format finishes the files, they are
// sealed, and every waiter of the record gets the batch.
//
// Batches that were begun are always finished, so a batch is begun only with its memory reserved. A
// reader's batch that gets none waits in the queue for memory; a prefetched one is given up.

#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>

#include "engine/base/log.h"
#include "engine/pipeline/batches/batch_table.h"
#include "engine/pipeline/batches/reclaimer.h"
#include "engine/pipeline/chunks/chunk_scheduler.h"
#include "engine/pipeline/chunks/kept_arrays.h"
#include "engine/pipeline/executor.h"
#include "engine/pipeline/memory/memory_queue.h"
#include "engine/pipeline/memory_file.h"
#include "engine/pipeline/prefetch/look_ahead.h"
#include "engine/pipeline/prefetch/prefetcher.h"
#include "engine/pipeline/waits/waiters.h"
#include "engine/telemetry/counters.h"
#include "engine/zarr/ome/collection.h"
#include "engine/zarr/ome/image.h"

namespace batchfs {

/// Thread-safe: it has no state and no lock of its own.
class BatchAssembler {
 public:
  /// The parts of the engine that it works with, which outlive it.
  struct Environment {
    BatchTable& table;
    Waiters& waiters;
    MemoryQueue& queue;
    Reclaimer& reclaimer;
    Budget& budget;
    const MemoryFiles& files;
    ChunkScheduler& scheduler;
    Executor& executor;
    Prefetcher& prefetcher;
    LookAhead& look_ahead;
    ChunkCache& cache;
    KeptArrays& kept;
    Counters& counters;
    Trace& trace;
    Log& log;
  };
  explicit BatchAssembler(Environment environment) : with_(environment) {}

  /// Has a worker assemble the record. `soon`: no later than work that readers wait for.
  void post(const BatchTable::RecordPtr& record, bool soon = false);
  /// The bytes of memory that a batch takes.
  std::uint64_t memory_of(const BatchLayout& layout) const;
  /// Is the record a prefetch that takes memory only as Reclaimer::reserve_spare() does?
  bool is_spare(const BatchTable::Record& record) const;
  /// Reserves memory for chunks on their way to a prefetched batch, which was `submitted` or is
  /// complete as a list. False when there is none now.
  bool reserve_for_chunks(const BatchTable::Record& record, Assembly& assembly, bool submitted,
                          bool spare);

 private:
  void note_prefetch(const BatchTable::RecordPtr& record, const Executor::Ticket& ticket);
  void assemble(const BatchTable::RecordPtr& record);
  Budget::Reservation reserve(const BatchTable::Record& record, std::uint64_t bytes,
                              BatchTable::Begun& begun, bool spare);
  Budget::Reservation reserve_for_prefetch(const BatchTable::Record& record, std::uint64_t bytes,
                                           bool spare);
  bool reserve_for_list(const BatchTable::Record& record, Assembly& assembly, bool waited,
                        bool spare);
  std::uint64_t memory_for_chunks(const Assembly& assembly, bool submitted) const;
  void queue(const BatchTable::RecordPtr& record, std::uint64_t bytes);
  void give_up(const BatchTable::RecordPtr& record, bool spare);
  bool is_compact(std::uint64_t bytes) const;
  void keep_chunks(const BatchRequest& request, Assembly& assembly);
  void complete(const BatchTable::RecordPtr& record, std::shared_ptr<Batch> batch,
                std::exception_ptr error);

  const Environment with_;
  std::mutex long_lists_;  // held while a long list is made. Lock order: first
  /// Guards the members below. Lock order: before Executor's.
  std::mutex prefetches_mutex_;
  std::vector<std::pair<std::weak_ptr<BatchTable::Record>, Executor::Ticket>> prefetches_;
  std::size_t live_prefetches_ = 0;  // when the others were last withdrawn
};

}  // namespace batchfs
