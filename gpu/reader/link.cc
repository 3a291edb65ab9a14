#include "gpu/reader/link.h"

#include <algorithm>
#include <cerrno>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gpu/reader/process.h"

namespace batchfs::reader {

using namespace handoff;

Link::Link(int socket) : socket_(socket), process_(this_process()) {}

Link::~Link() {
  if (this_process() == process_) wait_for_end();
  ::close(socket_);
}

void Link::wait_for_end() {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  ::shutdown(socket_, SHUT_WR);
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd ended{socket_, POLLIN, 0};
    if (left.count() <= 0 || ::poll(&ended, 1, static_cast<int>(left.count())) == 0) return;
    std::byte dropped;  // of a message; its descriptors are closed
    const ssize_t got = ::recv(socket_, &dropped, sizeof dropped, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return;
  }
}

/// Precondition: mutex_ is held. Returns false if the socket takes nothing now.
bool Link::send_releases() {
  struct {
    ReleaseMessage message;
    std::uint64_t leases[kMaxReleases];
  } out;
  while (!released_.empty()) {
    const std::size_t count = std::min<std::size_t>(released_.size(), kMaxReleases);
    out.message = make<ReleaseMessage>(MessageType::release);
    out.message.count = static_cast<std::uint32_t>(count);
    out.message.header.length =
        static_cast<std::uint32_t>(sizeof out.message + count * sizeof out.leases[0]);
    std::copy_n(released_.begin(), count, out.leases);
    const ssize_t sent =
        ::send(socket_, &out, out.message.header.length, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == ENOBUFS)) return false;
    released_.erase(released_.begin(), released_.begin() + static_cast<std::ptrdiff_t>(count));
  }
  return true;
}

void Link::release(std::uint64_t lease) {
  if (this_process() != process_) return;
  const std::lock_guard lock(mutex_);
  released_.push_back(lease);
  send_releases();
}

void Link::send(const void* message, std::size_t size) {
  for (int looks = 0;; ++looks) {
    {
      const std::lock_guard lock(mutex_);
      if (send_releases()) {
        const ssize_t sent = ::send(socket_, message, size, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent >= 0) return;
        if (errno != EAGAIN && errno != EINTR && errno != ENOBUFS)
          throw Lost{.why = "it has ended its connection", .closed = true};
      }
    }
    if (looks > kGreetingMilliseconds / kLookMilliseconds) throw Lost{"it takes no messages"};
    pollfd waiting{socket_, POLLOUT, 0};
    ::poll(&waiting, 1, kLookMilliseconds);
  }
}

}  // namespace batchfs::reader
