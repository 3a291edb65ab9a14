#pragma once
// Readers that wait for a result.
//
// A waiter is a callback that has not been called yet: of a reader that opened a batch, or that
// reads values of an array. A wait ends in one of four ways: with its result (take() and call
// `done`), by cancel(), at its deadline, or with the engine. Whichever end takes the waiter out of
// the table calls it, so each is called exactly once.

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "engine/base/log.h"
#include "engine/pipeline/batch.h"
#include "engine/pipeline/waits/ticker.h"
#include "engine/telemetry/counters.h"

namespace batchfs {

using WaiterId = std::uint64_t;
/// Receives the batch, or null and the error. Readers of array values receive no batch.
using BatchDone = std::function<void(std::shared_ptr<const Batch>, std::exception_ptr)>;

struct Waiter {
  BatchDone done;
  /// Called before `done` when the wait ends without a result.
  std::function<void(WaiterId)> on_leave;
  std::uint64_t since = 0;                                  // nanoseconds, Trace::now()
  static constexpr std::uint64_t kNoDeadline = UINT64_MAX;  // as `since`
};

/// Thread-safe.
class Waiters {
 public:
  /// `max_wait`: nanoseconds after which a waiter gets Error{timed_out}; UINT64_MAX: never. The
  /// others must outlive this.
  Waiters(std::uint64_t max_wait, Ticker& ticker, Counters& counters, Log& log)
      : max_wait_(max_wait), ticker_(ticker), counters_(counters), log_(log) {}

  /// Takes `waiter` over and returns its id; 0 after stop(), and then `waiter` is unchanged.
  WaiterId add(Waiter& waiter);
  /// Removes the waiter: the caller must call its `done`. Nothing when its wait has ended.
  std::optional<Waiter> take(WaiterId id);
  bool contains(WaiterId id) const;
  std::size_t count() const;

  /// Ends the wait with Error{interrupted}, unless it has ended.
  void cancel(WaiterId id);
  /// Ends the wait with `error`, unless it has ended.
  void fail(WaiterId id, std::exception_ptr error);
  /// Ends the waits that are over their deadline.
  void expire();
  /// Ends all waits, and refuses further ones.
  void stop();

 private:
  void arm();

  const std::uint64_t max_wait_;
  Ticker& ticker_;
  Counters& counters_;
  Log& log_;
  /// Guards the members below. Lock order: after BatchTable's; no other lock is taken with it held.
  mutable std::mutex mutex_;
  std::unordered_map<WaiterId, Waiter> waiters_;
  WaiterId last_id_ = 0;
  bool stopping_ = false;
};

}  // namespace batchfs
