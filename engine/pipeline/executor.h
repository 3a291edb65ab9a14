#pragma once
// Runs work in order of urgency on threads of its own.
//
// Requests of readers come first, then prefetches by how soon they are due. Executors share
// nothing: one that is idle or small takes no thread from another in the same process. A thread
// pool with one set of workers for the process cannot promise that: with oneTBB, the smallest limit
// of any executor was the limit of all.
//
// Its threads have a lower priority (nice 5) than the process: they yield to whom they work for.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>

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
  /// At most `threads` run at once. One is started now, the others when there is work for them;
  /// where the system refuses more, those that run do all of it. Throws no_memory when it refuses
  /// the first.
  explicit Executor(int threads);
  /// Stops as stop() does.
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Runs `work` once on one of the threads. `work` must not throw. After stop() it is dropped.
  /// noexcept: work that is lost for lack of memory is waited for.
  void post(Urgency urgency, std::function<void()> work) noexcept;

  /// Runs everything that was posted, and everything that this posts; then refuses more. Nothing is
  /// dropped: owners make their work end early before they stop. With `seconds`, waits no longer:
  /// false when something still runs, and then it must not be destroyed.
  bool stop(double seconds = 0);

  int threads() const { return max_threads_; }

 private:
  struct Item {
    Urgency urgency;
    std::uint64_t number;
    std::function<void()> work;
    bool operator<(const Item& other) const {  // std::priority_queue returns the largest first
      return urgency != other.urgency ? urgency > other.urgency : number > other.number;
    }
  };
  void start_thread();
  void run();

  const int max_threads_;
  /// Guards all members below. Lock order: after ChunkScheduler's; no other lock is taken with it
  /// held.
  std::mutex mutex_;
  std::condition_variable posted_;  // notified for each item, and at the end
  std::condition_variable idle_;    // notified when nothing is queued or runs
  std::priority_queue<Item> items_;
  std::uint64_t last_number_ = 0;
  std::size_t waiting_ = 0;  // threads without work
  std::size_t running_ = 0;  // items that run
  bool stopped_ = false;
  bool ending_ = false;  // threads return
  std::vector<std::thread> workers_;
};

}  // namespace batchfs
