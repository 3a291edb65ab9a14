#pragma once
// Decides when a daemon that has ended is restarted, and when the mount is given up.
//
// - Exits and crashes count: after too many within a minute, the next daemon would end likewise.
// - A kill (SIGKILL) is not the daemon's fault. But where memory is short, the kernel kills each
//   daemon as soon as it works: after many kills in a row without a batch for any reader, the mount
//   is given up.
// - A daemon that hung may have met a store or a machine that hangs: three in a row within an hour
//   without a batch for any reader are enough.
// - Readers wait for a minute for a daemon that gets ready, and for no other after that.

#include <chrono>
#include <deque>
#include <optional>
#include <string>

namespace batchfs {

class Restarts {
 public:
  using Time = std::chrono::steady_clock::time_point;

  struct End {
    std::string how;      // "was ended by signal 9 (Killed)"
    bool ready = false;   // it served requests
    bool served = false;  // a reader got a batch or values from it
    bool killed = false;  // by SIGKILL
    bool hung = false;    // it gave no sign of life, and was killed for that
  };
  /// Records an end. Returns the reason if no other daemon is to be started.
  std::optional<std::string> ended(const End& end, Time now);
  /// How long to wait before the next start, after such an end.
  std::chrono::milliseconds delay() const { return delay_; }
  /// The daemon serves.
  void got_ready() { down_since_.reset(); }

 private:
  std::deque<Time> ends_;           // that are held against it, of the last minute
  std::deque<Time> kills_;          // since a daemon served a reader, of the last ten minutes
  std::deque<Time> hangs_;          // likewise, of the last hour
  std::optional<Time> down_since_;  // no daemon has been ready
  std::chrono::milliseconds delay_{0};
};

}  // namespace batchfs
