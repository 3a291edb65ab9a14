#pragma once
// Work in order of urgency on the threads of a TBB arena.
//
// What a reader waits for comes first, then prefetches by how soon they are due. TBB's own queue is
// first in, first out; so each posted item enqueues one anonymous tick, and a tick runs whatever is the
// most urgent item at that moment.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <queue>
#include <vector>

namespace batchfs {

/// Smaller is sooner.
using Urgency = std::int64_t;
inline constexpr Urgency kReaderWaits = 0;
inline constexpr Urgency kPrefetch = 1;          // plus when it is due, in batches
inline constexpr Urgency kReadAhead = Urgency{1} << 62;  // guesses

/// For work that only sets something going elsewhere, a request of a network say: before all that takes this machine's
/// time, and among its like as urgent as what it is for. Else the network would rest while the processors work.
inline constexpr Urgency sets_going(Urgency urgency) { return urgency - kReadAhead - 1; }

class Executor {
 public:
  explicit Executor(int threads);
  /// As stop().
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Runs `work` once on some thread of the arena. `work` must not throw. After stop() it is dropped.
  void post(Urgency urgency, std::function<void()> work);

  /// Runs everything that was posted, and what that posts; then refuses more. Nothing is dropped that
  /// somebody waits for: owners make their work end early before they stop.
  /// With `seconds`, waits no longer: false when something still runs, and then it must not be destroyed.
  bool stop(double seconds = 0);

  int threads() const { return threads_; }

 private:
  struct Item {
    Urgency urgency;
    std::uint64_t number;
    std::function<void()> work;
    bool operator<(const Item& other) const {  // std::priority_queue gives the largest first
      return urgency != other.urgency ? urgency > other.urgency : number > other.number;
    }
  };
  struct Tick;
  void tick();

  const int threads_;
  std::mutex mutex_;
  std::condition_variable idle_;
  std::priority_queue<Item> items_;
  std::uint64_t posted_ = 0;
  int ticks_ = 0;  // enqueued in the arena and not yet finished
  bool stopped_ = false;
  struct Arena;
  std::unique_ptr<Arena> arena_;
};

}  // namespace batchfs
