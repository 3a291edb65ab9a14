#include "gpu/handoff/connect.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

namespace batchfs::handoff {

namespace {

bool fill(const std::string& path, sockaddr_un& address) {
  std::memset(&address, 0, sizeof address);
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return false;
  std::memcpy(address.sun_path, path.data(), path.size());
  return true;
}

}  // namespace

bool unix_address(const std::string& path, int directory, sockaddr_un& address) {
  if (fill(path, address)) return true;
  const std::size_t slash = path.rfind('/');
  return slash != std::string::npos &&
         fill("/proc/self/fd/" + std::to_string(directory) + path.substr(slash), address);
}

int connect_to(const std::string& path, std::chrono::milliseconds patience) {
  const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  // connect(2) uses the send timeout while the server's backlog is full.
  const auto limit_sending = [fd](std::chrono::milliseconds longest) {
    const timeval time{longest.count() / 1000, longest.count() % 1000 * 1000};
    ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
  };
  limit_sending(patience);
  // The socket itself, found once: a symbolic link's target may be longer than an address too.
  const int file = ::open(path.c_str(), O_PATH | O_CLOEXEC);
  sockaddr_un address;
  int status = -1;
  if (file >= 0 && fill("/proc/self/fd/" + std::to_string(file), address)) {
    do {
      status = ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    } while (status != 0 && errno == EINTR);
    // Without /proc.
    if (status != 0 && errno == ENOENT && fill(path, address))
      status = ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }
  const int cause = errno;
  if (file >= 0) ::close(file);
  if (status == 0) {
    limit_sending({});
    return fd;
  }
  ::close(fd);
  errno = cause;
  return -1;
}

}  // namespace batchfs::handoff
