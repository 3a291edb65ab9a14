#pragma once
// The queue for memory.
//
// A memory waiter is a batch or a read that a reader waits for and for which no memory was left.
// Memory waiters are served in their order of arrival, so that a large batch is not overtaken by
// small ones for ever. The queue is served by the ticker, since most memory is released without
// notice: a reader closes a file, or unmaps it.
//
// The first memory waiter fails when no memory came back for some time while nothing was being
// made: then readers hold all of it, and may do so for ever.

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>

#include "engine/base/budget.h"
#include "engine/base/error.h"
#include "engine/pipeline/waits/ticker.h"

namespace batchfs {

struct MemoryWaiter {
  std::uint64_t bytes = 0;
  /// How many readers wait for it.
  std::function<std::size_t()> readers;
  /// Called before it is served: if no reader is left, gives it up and returns true.
  std::function<bool()> give_up;
  /// Called once unless it was given up: with its memory, or with none and the error.
  std::function<void(Budget::Reservation, std::exception_ptr)> granted;
};

/// Thread-safe. Calls out with no lock held.
class MemoryQueue {
 public:
  struct Environment {
    /// Reserves bytes, or returns nothing.
    std::function<Budget::Reservation(std::uint64_t bytes)> reserve;
    /// Is anything being made whose memory comes back, or goes to a reader, by itself?
    std::function<bool()> is_at_work;
  };
  /// `patience`: nanoseconds without any memory coming back after which the first memory waiter
  /// fails.
  MemoryQueue(const Budget& budget, Ticker& ticker, std::uint64_t patience, Environment environment)
      : budget_(budget),
        ticker_(ticker),
        patience_(patience),
        environment_(std::move(environment)) {}

  /// After stop() its `granted` is called at once.
  void push(MemoryWaiter waiter);
  bool empty() const;
  /// Readers that wait for memory.
  std::size_t readers() const;

  /// Serves waiters while memory lasts. Precondition: called by one thread at a time.
  void serve();
  /// Fails all, and those that come later.
  void stop();

 private:
  std::shared_ptr<MemoryWaiter> first() const;
  bool pop(const std::shared_ptr<MemoryWaiter>& first);
  bool has_lost_patience(bool served);
  Error no_memory(std::uint64_t bytes) const;

  const Budget& budget_;
  Ticker& ticker_;
  const std::uint64_t patience_;
  const Environment environment_;
  /// Guards the members below. No other lock is taken with it held.
  mutable std::mutex mutex_;
  std::deque<std::shared_ptr<MemoryWaiter>> waiters_;
  std::uint64_t last_used_ = 0;  // memory in use when serve() last looked
  std::uint64_t came_back_ =
      0;  // nanoseconds, Trace::now(): when memory last came back or was sure to
  bool stopping_ = false;
};

}  // namespace batchfs
