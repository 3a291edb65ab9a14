#pragma once
// The level of a daemon's log, changed from outside: SIGUSR1 turns debug on, and off again; with a
// value, as `batchfs log --level` sends it (sigqueue(3)), it sets that level.

#include <thread>

#include <csignal>

#include "engine/base/log.h"

namespace batchfs {

inline constexpr int kLogLevelSignal = SIGUSR1;

class LogLevelSignal {
 public:
  /// Before any other thread is started, so that none takes the signal. `log` outlives it.
  explicit LogLevelSignal(Log& log);
  ~LogLevelSignal();
  LogLevelSignal(const LogLevelSignal&) = delete;
  LogLevelSignal& operator=(const LogLevelSignal&) = delete;

 private:
  void run();

  Log& log_;
  const int signals_, stop_;
  std::thread thread_;
};

}  // namespace batchfs
