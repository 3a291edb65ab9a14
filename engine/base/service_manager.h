#pragma once
// Notifications of a service to the manager that started it: ready, stopping, alive.
//
// The protocol is sd_notify(3)'s: datagrams of NAME=VALUE lines to the socket that the environment
// variable NOTIFY_SOCKET names. It needs no library, and where there is no manager every call does
// nothing.

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>

namespace batchfs {

/// Sends `state`, lines such as "READY=1", with descriptors for the manager to keep ("FDSTORE=1").
/// False when there is no manager or it refused; a service works anyway.
bool notify_service_manager(std::string_view state, std::span<const int> descriptors = {});

/// How often the manager wants to hear that the service is alive; nullopt when it does not.
std::optional<std::chrono::microseconds> watchdog_interval();

/// Notifies the manager that a service is alive, as long as it is.
class Watchdog {
 public:
  /// Where the manager asks for it, starts a thread that after begin() calls `alive` twice in each
  /// interval, and notifies the manager when it returns true. `alive` may block: that is how a hung
  /// service looks. Throws std::system_error when the thread cannot be started: before begin(), so
  /// that a service that is not ready yet can fail.
  explicit Watchdog(std::function<bool()> alive,
                    std::optional<std::chrono::microseconds> interval = watchdog_interval());
  /// Waits for a call of `alive` that has begun.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  /// The first call comes half an interval from now.
  void begin();
  /// No further calls are begun. Does not wait.
  void stop();

 private:
  std::mutex mutex_;                 // guards the two flags
  std::condition_variable changed_;  // notified when one of them is set
  bool begun_ = false, stopped_ = false;
  std::thread thread_;
};

}  // namespace batchfs
