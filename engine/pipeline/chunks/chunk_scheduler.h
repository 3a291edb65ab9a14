#pragma once
// Chunks in progress: each is fetched and decoded once for everything that needs it while it is in
// flight or in the cache.
//
// An assembly is a batch, or a read of an array, with the list of its uses of chunks (assembly.h).
// A consumer is one use, with its assembly. A task is a chunk that consumers wait for; it runs when
// it is fetched and decoded.
//
// A task is made when the first use of a chunk is submitted, and runs when an assembly that is
// started needs it. Until then later uses join it. When it runs it serves every consumer that the
// cheapest box to decode covers; consumers that join while it runs are served from its result too.
// The others get another run.
//
// An assembly that is not started only joins. So a chunk that takes long to decode, and is too
// large to be kept until the batches that need it are due, fills their parts at once: a batch is
// smaller than the chunks that it is cut from.
//
// Memory: where the budget is used up, one fetch is in flight at a time, and one chunk is being
// decoded (chunk_decoder.h): this much is granted beyond the budget, since work that was begun must
// end.

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "engine/base/budget.h"
#include "engine/base/log.h"
#include "engine/pipeline/chunks/assembly.h"
#include "engine/pipeline/chunks/chunk_cache.h"
#include "engine/pipeline/chunks/chunk_decoder.h"
#include "engine/pipeline/chunks/chunk_fetcher.h"
#include "engine/pipeline/chunks/chunk_task.h"
#include "engine/pipeline/chunks/reported_objects.h"
#include "engine/pipeline/executor.h"
#include "engine/telemetry/counters.h"

namespace batchfs {

/// Thread-safe.
class ChunkScheduler {
 public:
  /// `release_batch` releases the memory of a batch, or of a file, that is only kept for later
  /// readers, and returns false when there is none. Thread-safe; called with no lock of the
  /// scheduler held. Without it only chunks are evicted.
  ChunkScheduler(Executor& executor, Budget& budget, ChunkCache& cache, Counters& counters,
                 Trace& trace, Log& log, std::function<bool()> release_batch = {});

  // These are noexcept: a failed allocation would leave a task that never runs, and readers that
  // wait for it.

  /// From now on every use fails with Error{interrupted}.
  void interrupt() noexcept;
  /// After interrupt(): returns when no fetch is in flight. Stop the executor next.
  void wait();

  /// Estimates the memory that chunks of `assembly`, which is complete as a list or `submitted`,
  /// will take on their way from a remote store until they are decoded, without chunks already in
  /// flight. The number of threads bounds how many are decoded at a time.
  std::uint64_t memory_ahead(const Assembly& assembly, bool submitted) const;

  /// Takes on every use of `assembly`; `assembly->finished` is called when all are done, which may
  /// be before this returns.
  void submit(const std::shared_ptr<Assembly>& assembly) noexcept;

  /// Runs the tasks that `assembly`, which was submitted, still waits for, at its present urgency;
  /// or drops it, when it is cancelled.
  void reprioritize(const std::shared_ptr<Assembly>& assembly) noexcept;

  /// Brings a chunk into the cache for a likely later read, if memory is free.
  void warm(const std::shared_ptr<const Array>& array, std::int64_t chunk) noexcept;

 private:
  void post(const std::shared_ptr<ChunkTask>& task, Urgency urgency);
  void withdraw(ChunkTask& task);
  void forget(ChunkTask& task);
  bool postpone(const std::shared_ptr<ChunkTask>& task, std::vector<ChunkConsumer>& consumers,
                Budget::Reservation& memory);
  /// Brings the chunk. A turn that starts I/O re-posts work that needs no fetch at `urgency`.
  enum class Turn { starts_io, works };
  struct Decision;
  Decision decide(const std::shared_ptr<ChunkTask>& task, Turn turn, Urgency urgency);
  void run(const std::shared_ptr<ChunkTask>& task, Turn turn, Urgency urgency = kReaderWaits);
  void process_arrived(const std::shared_ptr<ChunkTask>& task);
  void decode(const std::shared_ptr<ChunkTask>& task, Box box, std::vector<ChunkConsumer> consumers,
              std::shared_ptr<const KeptChunk> stored);
  /// Chooses the box by chunk_costs.h.
  Box box_to_decode(const ChunkTask& task, const Box& need,
                    const std::vector<ChunkConsumer>& consumers) const;
  void fetch(const std::shared_ptr<ChunkTask>& task, ChunkFetcher::Fetch fetch);
  void fetch_within_memory(const std::shared_ptr<ChunkTask>& task, ChunkFetcher::Fetch fetch,
                           std::size_t others);
  void serve_others(const std::shared_ptr<ChunkTask>& task, const KeptChunk& stored);
  std::exception_ptr report(const ChunkTask& task, std::exception_ptr failure);
  void finish(const std::shared_ptr<ChunkTask>& task, const std::vector<ChunkConsumer>& consumers,
              std::variant<ChunkDecoder::Result, std::exception_ptr> outcome);

  Executor& executor_;
  Budget& budget_;
  ChunkCache& cache_;
  Counters& counters_;
  Log& log_;
  ReportedObjects stale_;
  ChunkDecoder decoder_;
  ChunkFetcher fetcher_;
  /// Guards the members below and all tasks. Lock order: before ChunkCache's and Executor's.
  mutable std::mutex mutex_;
  std::unordered_map<ChunkKey, std::shared_ptr<ChunkTask>, ChunkKeyHash> tasks_;
  bool stopping_ = false;
  int fetches_ = 0;  // in flight: their completions use this
  std::condition_variable no_fetches_;
  int running_ = 0;  // tasks
  /// Postponed for lack of memory, until another task has run.
  std::deque<std::shared_ptr<ChunkTask>> postponed_;
};

}  // namespace batchfs
