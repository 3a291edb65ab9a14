#pragma once
// The plan at work: batches assembled ahead of their readers.
//
//   Engine engine({.memory = 4 << 30}, log);
//   engine.open(request, [](std::shared_ptr<const Batch> batch, std::exception_ptr error) { ... });
//
// A reader opens batches of a view in some order; its way through the view is a stream. A batch is
// cut from chunks: pieces of the store's arrays that are fetched and decoded as a whole or in part.
// The engine makes a batch once for all of its readers, fetches a chunk once for all batches that
// need it soon, and makes the next batches of a stream before its reader asks. Nothing here blocks
// its caller: results come by callback, from a worker or at once.
//
// This class is the facade of these parts, each described in its header:
//   batches/batch_table      which batches are wanted, in progress or ready
//   batches/batch_assembler  makes a batch: layout, memory, plan, chunks, waiters
//   batches/deliveries       deliveries to readers
//   waits/waiters            readers that wait; deadlines and cancellation
//   memory/memory_queue      batches and reads that wait for memory, in order
//   memory/reclaimer         chooses what to drop when memory is short
//   prefetch/read_ahead      makes batches before readers ask: prefetcher (streams), look_ahead
//   arrays/array_reads       reads of arrays
//   chunks/chunk_scheduler   chunks in progress, for batches and reads; chunk_cache keeps them
//   chunks/kept_arrays       arrays whose chunks all stay in memory
//
// Memory: a batch is begun when it fits into the budget. Memory that nobody waits for is reclaimed;
// where readers hold the rest, the next one waits in a queue, and a batch that was begun is always
// finished.
//
// Time: nobody waits longer than Options::wait, and cancel() ends any wait at once.
//
// Lock order, each before the next:
//   BatchTable, Waiters, Ticker, TimerThread
//   ChunkScheduler, then ChunkCache or Executor
//   LookAhead or KeptArrays, ChunkCache
// Prefetcher, MemoryQueue, Assembly, StreamStatistics and Trace take no other lock with their own
// held. No part calls another one's callback with a lock held.

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/pipeline/arrays/array_reads.h"
#include "engine/pipeline/batches/batch_assembler.h"
#include "engine/pipeline/read_ahead.h"
#include "engine/pipeline/waits/idle_timer.h"

namespace batchfs {

/// Thread-safe.
class Engine {
 public:
  struct Options {
    int threads = 0;  // 0: one per core
    Executor::Threads kind = Executor::Threads::pooled;
    std::uint64_t memory = 0;  // bytes; 0: default_memory_budget()
    bool prefetch = true;
    /// Seconds after which a reader that waits for a batch or a read gets Error{timed_out}; 0:
    /// never.
    double wait = 0;
    /// Seconds without a reader after which memory that is kept for readers is released; 0: never.
    double idle = 300;
    /// Called once, from any thread, when the first reader has got a batch or values.
    std::function<void()> served;
    /// The store, as for add_store(). May be null.
    std::shared_ptr<Store> store;
    /// Bytes of `memory` that the caller holds as long as the engine lives: metadata.
    std::uint64_t held = 0;
  };

  /// `log` outlives the engine.
  Engine(Options options, Log& log);
  /// Stops as stop() does.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// The remaining waiters get Error{interrupted}, and so do later ones. Returns true after the
  /// last callback has returned. With `seconds`, gives up after that time on reads of a local store
  /// that do not return (a network disk whose server is gone): false, and then the engine must not
  /// be destroyed. Not for callbacks.
  bool stop(double seconds = 0);

  /// The store is stopped with the engine, which would else wait for the network to end it. Does
  /// not keep the store alive.
  void add_store(const std::shared_ptr<Store>& store);
  /// Drops every batch, chunk, stream and plan of the store, so that nothing here keeps its arrays
  /// alive. Chunks that are still being decoded are kept when they are done: call it again then.
  /// Precondition: nobody opens batches or reads arrays of it any more, and its views live.
  void forget(const Store& store);
  /// Runs the work on a worker thread; drops it after stop(). It must end soon, and not throw.
  void post(Urgency urgency, std::function<void()> work) noexcept {
    executor_.post(urgency, std::move(work));
  }
  /// Memory of the budget for readers, beside their batches. Drops what is kept for later; throws
  /// no_memory where readers hold the rest. `what` takes it: "the labels of the view 'v'".
  Budget::Reservation reserve(std::uint64_t bytes, const std::string& what);
  /// Memory of the budget that the caller holds: the metadata of a store that is added later. Drops
  /// what is kept for later, and is granted in any case.
  Budget::Reservation hold(std::uint64_t bytes);

  using WaiterId = batchfs::WaiterId;
  using BatchDone = batchfs::BatchDone;

  /// Calls `done` once with the batch when it is complete, possibly before this returns.
  /// Throws nothing: errors go to `done`. The id is for cancel(); 0 when `done` was called already.
  WaiterId open(const BatchRequest& request, BatchDone done);
  /// The same, and waits for it. Throws the error. Not for workers of this engine.
  std::shared_ptr<const Batch> open(const BatchRequest& request);

  /// The waiter of a batch or of a read goes away: its `done` is called with Error{interrupted},
  /// unless it has been called. The batch is still made if another reader waits for it or it is due
  /// soon anyway.
  void cancel(WaiterId waiter) { waiters_.cancel(waiter); }

  /// Reads of arrays, whose waits end as those of batches do.
  ArrayReads& arrays() { return arrays_; }

  /// For executors that share the engine's workers.
  const Executor& executor() const { return executor_; }
  Counters& counters() { return counters_; }
  Trace& trace() { return trace_; }
  const StreamStatistics& streams() const { return deliveries_.streams(); }
  const MemoryFiles& memory_files() const { return memory_files_; }
  const Budget& budget() const { return budget_; }

  struct State {
    int threads = 0;
    std::uint64_t cache_bytes = 0;         // memory of chunks that are kept
    std::uint64_t readers_waiting = 0;     // for a batch or a read
    std::uint64_t waiting_for_memory = 0;  // of these
    std::vector<Prefetcher::StreamState> streams;
  };
  State state() const;

 private:
  void tick();
  BatchAssembler::Environment environment();

  Log& log_;
  std::mutex stores_mutex_;  // guards stores_; no other lock is taken with it held
  std::vector<std::weak_ptr<Store>> stores_;
  const bool prefetching_;
  Counters counters_;
  Budget budget_;
  const MemoryFiles memory_files_;
  Trace trace_;
  Deliveries deliveries_;
  ChunkCache cache_;
  Prefetcher prefetcher_;
  LookAhead look_ahead_;
  KeptArrays kept_;
  Executor executor_;
  ChunkScheduler scheduler_;
  Ticker ticker_;
  IdleTimer idle_;
  Waiters waiters_;
  BatchTable table_;
  Reclaimer reclaimer_;
  MemoryQueue queue_;
  BatchAssembler assembler_;
  ReadAhead read_ahead_;
  ArrayReads arrays_;
  const Budget::Reservation held_;  // by the caller
};

}  // namespace batchfs
