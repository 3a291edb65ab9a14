#pragma once
// The plan at work: batches assembled ahead of their readers.
//
//   Engine engine({.memory = 4 << 30}, log);
//   engine.open(request, [](std::shared_ptr<const Batch> batch, std::exception_ptr error) { ... });
//
// Memory: a batch is begun when there is room for it in the budget. Room is made by what nobody waits for; where
// readers hold the rest, whoever comes waits in a queue, and a batch that was begun is always finished.
// Time: nobody waits longer than Options::wait, and cancel() ends any wait at once.
//
// One assembly serves every reader of a batch; batches share chunks through the scheduler and the cache.
// Nothing here blocks its caller: results come by callback, from a worker or at once.

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "engine/pipeline/batch.h"
#include "engine/pipeline/chunk_scheduler.h"
#include "engine/pipeline/look_ahead.h"
#include "engine/pipeline/prefetcher.h"
#include "engine/pipeline/readers.h"
#include "engine/pipeline/trace.h"
#include "engine/store/timer_thread.h"

namespace batchfs {

class Engine {
 public:
  struct Options {
    int threads = 0;            // 0: one per core
    std::uint64_t memory = 0;   // bytes; 0: default_memory_budget()
    bool prefetch = true;
    /// Seconds after which whoever waits for a batch or a read gets Error{timed_out}; 0: never.
    double wait = 0;
    /// Seconds after which memory is given back that is kept for readers, when none came; 0: never.
    double idle = 300;
    /// Called once, from any thread, when the first reader has got a batch or values.
    std::function<void()> served;
    /// Stopped with the engine, which would else wait for the network to end it. Null: it goes on.
    std::shared_ptr<Store> store;
    /// Bytes of `memory` that the caller holds as long as the engine lives: metadata.
    std::uint64_t held = 0;
  };

  Engine(Options options, Log& log);
  /// As stop().
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Waiters that are left get Error{interrupted}, and so does whoever comes later. Returns after the last
  /// callback has. Not for callbacks.
  void stop();
  /// The same, but gives up after some seconds on reads of a local store that do not return (a network disk whose
  /// server is gone): false. The engine must not be destroyed then.
  bool stop_within(double seconds);

  using BatchDone = std::function<void(std::shared_ptr<const Batch>, std::exception_ptr)>;
  using WaiterId = std::uint64_t;

  /// Gives the batch when it is complete. `done` is called once, possibly before this returns. Throws
  /// nothing: errors go to `done`. The id is for cancel(); 0 when `done` was called already.
  WaiterId open(const BatchRequest& request, BatchDone done);

  /// The waiter goes away: its `done` is called with Error{interrupted}, unless it has been called. The
  /// batch goes on only if someone else waits for it or it is due soon anyway.
  void cancel(WaiterId waiter);

  /// A box of an array, stored values in native byte order, after `header`, as a batch of one file. As open().
  WaiterId open_box(std::shared_ptr<const Array> array, Box box, std::string header, BatchDone done);

  using ReadDone = std::function<void(std::exception_ptr)>;
  /// Reads C-order elements [first, first + count) of an array, stored values in native byte order, to
  /// `out`, which `memory` holds alive, also after `done` was called with timed_out. Chunks are kept in the cache for
  /// the next read.
  void read_elements(const std::shared_ptr<const Array>& array, std::int64_t first, std::int64_t count,
                     std::byte* out, std::shared_ptr<void> memory, ReadDone done);
  /// Reads a box into `out` with `strides` in bytes, converted when `converter` is given.
  void read_box(const std::shared_ptr<const Array>& array, const Box& box,
                std::shared_ptr<const Converter> converter, std::byte* out, const Dims& strides,
                std::shared_ptr<void> memory, ReadDone done);
  /// The same, waiting for the end. Throws what went wrong. Not for workers of this engine.
  void read_box(const std::shared_ptr<const Array>& array, const Box& box,
                std::shared_ptr<const Converter> converter, std::byte* out, const Dims& strides);
  std::shared_ptr<const Batch> open(const BatchRequest& request);

  /// Likely to be read next: the chunks of elements [first, first + count).
  void read_ahead(const std::shared_ptr<const Array>& array, std::int64_t first, std::int64_t count);

  Counters& counters() { return counters_; }
  const Trace& trace() const { return trace_; }
  Trace& trace() { return trace_; }  // for those who make batches of it elsewhere
  const Readers& readers() const { return readers_; }
  const MemoryFiles& memory_files() const { return memory_files_; }
  const Budget& budget() const { return budget_; }
  std::uint64_t cache_bytes() const { return cache_.bytes(); }
  int threads() const { return executor_.threads(); }
  std::vector<Prefetcher::StreamState> streams() const { return prefetcher_.streams(); }
  struct Waiting {
    std::uint64_t readers = 0;     // that wait for a batch or a read
    std::uint64_t for_memory = 0;  // of these, those that wait for memory
  };
  Waiting waiting() const;

 private:
  struct Waiter {
    WaiterId id;
    BatchRequest request;  // this reader's: its rank may be another than that of who asked first
    BatchDone done;
    std::uint64_t since;  // nanoseconds, monotonic
  };
  /// A batch under way or ready.
  struct Entry {
    BatchRequest request;
    std::shared_ptr<Batch> batch;        // set when ready
    std::shared_ptr<Assembly> assembly;  // set while it is being assembled
    bool submitted = false;              // assembly is complete as a list and with the scheduler
    std::vector<Waiter> waiters;
    /// kReaderWaits, or when it is due: kPrefetch plus the value that now_ will have.
    Urgency urgency = kReaderWaits;
    bool started = true;  // its chunks may be brought; until then it takes what others bring
    bool opened = false;
    std::uint64_t began = 0;  // when it was started to be assembled; 0: not yet
    Budget::Reservation granted;  // its memory, after it waited for it
    bool queued = false;          // waits for it
  };
  /// A read of an array that somebody waits for.
  struct Read {
    ReadDone done;
    std::uint64_t since;
    std::shared_ptr<Assembly> assembly;  // null while it waits for memory
  };
  /// Somebody for whom there was no memory: a batch, or else a read.
  struct Short {
    std::uint64_t bytes;
    std::shared_ptr<Entry> entry;
    WaiterId read = 0;
    std::function<void(Budget::Reservation, std::exception_ptr)> granted;
  };

  void post_assemble(const std::shared_ptr<Entry>& entry);
  void assemble(const std::shared_ptr<Entry>& entry);
  void give_up(const std::shared_ptr<Entry>& entry);
  void complete(const std::shared_ptr<Entry>& entry, std::shared_ptr<Batch> batch,
                std::exception_ptr error);
  /// A reader that asked at `since` has its batch now, or an error.
  void given(const BatchRequest& request, const Batch* batch, std::uint64_t since, Trace::End end);
  Trace::Batch traced(const BatchRequest& request);
  /// A reader has got what it wanted.
  void note_served();
  Budget::Reservation make_room(std::uint64_t bytes, bool waited, std::uint64_t keep_until);
  std::uint64_t keep_until(const Entry& entry);
  void drop(std::shared_ptr<Entry> entry);
  void trim_opened();
  std::uint64_t drop_opened();

  // What is done ahead of readers: engine_ahead.cc.
  /// Posts a guess at what comes next; when it fails, the reader that needs it will say so.
  void post_guess(Urgency urgency, std::function<void()> work);
  void prefetch(const BatchRequest& request, std::uint64_t bytes);
  std::shared_ptr<Entry> expect(const BatchRequest& request, std::int64_t distance, bool started);
  bool start(const std::shared_ptr<Entry>& entry);
  bool reserve_ahead(const Entry& entry, Assembly& assembly, bool waited, bool submitted);
  void look_ahead(const BatchRequest& request);
  void drop_overdue();

  // Waits and their ends: engine_waits.cc.
  void leave(WaiterId waiter, std::exception_ptr why);
  WaiterId begin_read(ReadDone done, std::shared_ptr<Assembly> assembly);
  bool end_read(WaiterId read);
  void queue_for_memory(Short whom);
  void serve_queue();
  bool is_at_work() const;
  void give_back();
  void tick();
  void arm();
  Error no_room(std::uint64_t bytes) const;

  Log& log_;
  const std::shared_ptr<Store> store_;
  Counters counters_;
  Budget budget_;
  const MemoryFiles memory_files_;
  const bool prefetching_;
  const std::uint64_t wait_ns_, idle_ns_;  // UINT64_MAX: for ever
  const std::function<void()> when_served_;
  std::atomic<bool> served_{false};
  ChunkCache cache_;
  Prefetcher prefetcher_;
  LookAhead look_ahead_;
  Readers readers_;
  Trace trace_;

  mutable std::mutex mutex_;  // guards what follows; never held while calling out, nor while planning
  std::map<BatchKey, std::shared_ptr<Entry>> entries_;
  std::unordered_map<WaiterId, std::shared_ptr<Entry>> waiting_;
  std::unordered_map<WaiterId, Read> reads_;
  std::deque<Short> short_;          // first come, first served
  std::uint64_t short_used_ = 0, short_since_ = 0;  // memory in use, and since when none was given back
  std::uint64_t tick_at_ = UINT64_MAX;  // when tick() comes
  std::uint64_t last_asked_ = 0;        // when somebody wanted something; 0: what was kept since is given back
  std::deque<BatchKey> opened_;  // ready batches that were opened, oldest first: the first to go
  std::uint64_t now_ = 0;  // batches opened
  std::uint64_t looks_ahead_ = 0;
  WaiterId last_waiter_ = 0;
  bool stopping_ = false;

  Executor executor_;  // last: its threads use all of the above
  ChunkScheduler scheduler_;
  TimerThread clock_;
  const Budget::Reservation held_;  // by the caller
};

}  // namespace batchfs
