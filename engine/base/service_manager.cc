#include "engine/base/service_manager.h"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <sys/socket.h>
#include <sys/un.h>

#include "engine/base/descriptor_passing.h"

namespace batchfs {

namespace {

/// The manager's address: a path, or a name without a file, which is written '@name'.
std::optional<std::pair<sockaddr_un, socklen_t>> manager_address() {
  const char* name = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  if (name == nullptr || (name[0] != '/' && name[0] != '@')) return std::nullopt;
  const std::size_t length = std::strlen(name);
  if (length < 2 || length >= sizeof address.sun_path) return std::nullopt;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, name, length);
  if (name[0] == '@') address.sun_path[0] = '\0';
  return std::pair{address, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length)};
}

}  // namespace

bool notify_service_manager(std::string_view state, std::span<const int> descriptors) {
  const auto address = manager_address();
  if (!address) return false;
  const Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (socket.get() < 0 ||
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address->first),
                address->second) != 0)
    return false;
  return send_passing(socket.get(), std::as_bytes(std::span(state)), descriptors) ==
         static_cast<ssize_t>(state.size());
}

std::optional<std::chrono::microseconds> watchdog_interval() {
  // WATCHDOG_PID is not asked: under a supervisor, it is a child of the process with that number
  // that serves.
  const char* text = std::getenv("WATCHDOG_USEC");
  if (text == nullptr || std::getenv("NOTIFY_SOCKET") == nullptr) return std::nullopt;
  std::uint32_t interval = 0;  // an hour fits
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), interval);
  if (error != std::errc() || *end != '\0' || interval == 0) return std::nullopt;
  return std::chrono::microseconds(interval);
}

Watchdog::Watchdog(std::function<bool()> alive, std::optional<std::chrono::microseconds> interval) {
  if (!interval) return;
  thread_ = std::thread([this, alive = std::move(alive), pause = *interval / 2] {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return begun_ || stopped_; });
    // Not at once: a mount that is ended as soon as it is made must not be busy with the question.
    while (!changed_.wait_for(lock, pause, [this] { return stopped_; })) {
      lock.unlock();
      if (alive()) notify_service_manager("WATCHDOG=1");
      lock.lock();
    }
  });
}

Watchdog::~Watchdog() {
  stop();
  if (thread_.joinable()) thread_.join();
}

void Watchdog::begin() {
  const std::lock_guard lock(mutex_);
  begun_ = true;
  changed_.notify_all();
}

void Watchdog::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

}  // namespace batchfs
