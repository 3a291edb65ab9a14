#pragma once
// Runs work in order of urgency on the workers of oneTBB.
//
// Requests of readers come first, then prefetches by how soon they are due. The queue is the
// executor's: oneTBB has no such order.
//
// The process has one pool of workers (worker_pool.h). `Executor(threads)` takes as many from it,
// and returns them at its end for the next one. `Executor(host, threads)` takes none: it shares
// the host's workers. A worker is for all that share: it takes from the executor with work that has
// the least of its threads running.
//
// The first worker is taken with the executor, the others with the first work for them; they sleep
// without work. Where the system refuses a thread, those that run do all work. Work that blocks (a
// read of a network disk that hangs) holds one worker, and the others continue.
//
// Workers have a lower priority (nice 5) than the process: they yield to the threads that they work
// for. Signals are left to the process's other threads.
//
// Threads do not survive fork(): an executor ends in the process that made it. A forked process may
// make new ones; they have threads of their own, which end with them.

#include <compare>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

namespace batchfs {

/// Smaller is sooner.
using Urgency = std::int64_t;
inline constexpr Urgency kReaderWaits = 0;
inline constexpr Urgency kPrefetch = 1;                  // plus when it is due, in batches
inline constexpr Urgency kReadAhead = Urgency{1} << 62;  // guesses

/// Urgency of I/O submission for work of this urgency: ahead of all CPU work. Else the network
/// would idle while the processors work.
inline constexpr Urgency io_start(Urgency urgency) { return urgency - kReadAhead - 1; }

class Executor {
 public:
  enum class Threads : std::uint8_t {
    pooled,  // of oneTBB; of its own in a forked process
    own,     // for a process whose other libraries may use oneTBB
  };

  /// At most `threads` items run at once; fewer where the system refuses threads. Throws no_memory
  /// where it refuses the first.
  explicit Executor(int threads, Threads kind = Threads::pooled);
  /// At most `threads` items run at once, on workers of `host`, which may end before.
  Executor(const Executor& host, int threads);
  /// Stops as stop() does.
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// An item of the queue; by default none.
  struct Ticket {
    Urgency urgency = 0;
    std::uint64_t number = 0;
    friend auto operator<=>(const Ticket&, const Ticket&) = default;
  };

  /// Runs `work` once on one of the workers. `work` must not throw. After stop() it is dropped.
  /// noexcept: work that is lost for lack of memory is waited for.
  Ticket post(Urgency urgency, std::function<void()> work) noexcept;
  /// Removes an item that has not begun to run, and destroys its work. Else does nothing. Work that
  /// was posted again at another urgency must not stay: as long as more urgent work comes, nothing
  /// else would end it.
  void withdraw(const Ticket& ticket) noexcept;

  /// Runs everything that was posted, and everything that this posts; then refuses more. Nothing is dropped:
  /// owners make their work end early before they stop. With `seconds`, waits no longer: false when
  /// something still runs, and then it must not be destroyed. Not for workers.
  bool stop(double seconds = 0);

  int threads() const { return threads_; }

 private:
  struct Workers;
  bool is_idle() const { return running_ == 0 && items_.empty(); }

  const std::shared_ptr<Workers> workers_;  // and of those that share them
  const int threads_;
  // Guarded by the workers' mutex. Lock order: after ChunkScheduler's; no other lock is taken with
  // it held.
  std::condition_variable idle_;                   // notified when nothing is queued or runs
  std::map<Ticket, std::function<void()>> items_;  // the next to run is the first
  std::uint64_t last_number_ = 0;
  int running_ = 0;  // items that run
  bool stopped_ = false;
};

}  // namespace batchfs
