#pragma once
// A mount as a service: reports to systemd, or another manager with sd_notify(3).

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "engine/base/service_manager.h"

namespace batchfs {

/// Must be constructed before the session, so that it is destroyed after it: the watchdog may wait
/// for an answer that only the end of the session brings.
class MountService {
 public:
  /// `alive` is called, in a thread, each time that the kernel got an answer from the mount, at
  /// least twice in each `interval` if that is set. It must not block.
  MountService(std::string store, std::string directory, std::function<void()> alive = {},
               std::optional<std::chrono::microseconds> interval = {});

  /// The mount can be used. From now on the manager hears that it is alive: that the kernel got an
  /// answer from the threads that serve it.
  void ready();
  /// The mount ends. Does not wait.
  void stopping();

 private:
  const std::string store_, directory_;
  Watchdog watchdog_;
};

}  // namespace batchfs
