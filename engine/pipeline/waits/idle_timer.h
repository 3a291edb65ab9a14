#pragma once
// Detects that no reader has come for long, so that memory kept for readers can be released.

#include <atomic>
#include <cstdint>

#include "engine/pipeline/waits/ticker.h"

namespace batchfs {

/// Thread-safe.
class IdleTimer {
 public:
  /// `idle`: nanoseconds; UINT64_MAX: never.
  IdleTimer(std::uint64_t idle, Ticker& ticker) : idle_(idle), ticker_(ticker) {}

  /// A reader has come.
  void touch();
  /// To be asked at each tick. True once, when no reader has come for long and none is `waiting`.
  bool is_over(bool waiting);

 private:
  const std::uint64_t idle_;
  Ticker& ticker_;
  std::atomic<std::uint64_t> last_{
      0};  // nanoseconds, Trace::now(), of the last touch; 0: none since it was over
};

}  // namespace batchfs
