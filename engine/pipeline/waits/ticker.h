#pragma once
// Calls one function again and again, as long as requested.

#include <cstdint>
#include <functional>
#include <mutex>

#include "engine/store/timer_thread.h"

namespace batchfs {

/// Thread-safe.
class Ticker {
 public:
  /// `tick` runs on a thread of the ticker's own. It must not throw; it asks for the next tick with
  /// arm().
  explicit Ticker(std::function<void()> tick) : tick_(std::move(tick)) {}

  /// The next tick comes in `pause` nanoseconds, or sooner.
  void arm(std::uint64_t pause);

  /// Returns when a tick that runs has ended; none comes from then on. Not to be called by the
  /// tick.
  void stop() { timer_.stop(); }

 private:
  const std::function<void()> tick_;
  /// Guards next_. Lock order: after BatchTable's, before the timer thread's.
  std::mutex mutex_;
  std::uint64_t next_ = UINT64_MAX;  // nanoseconds, steady clock
  TimerThread timer_;                // last: its thread uses all of the above
};

}  // namespace batchfs
