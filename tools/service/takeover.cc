#include "tools/service/takeover.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "gpu/handoff/private_directory.h"
#include "gpu/handoff/trust.h"
#include "tools/service/mounts.h"
#include "tools/service/packets.h"

namespace batchfs {

namespace {

/// Time for the other side to answer; a supervisor does nothing that takes long.
constexpr timeval kTakeoverTimeout{30, 0};

/// The path contains the device number, which identifies the mount. False if it is too long for an
/// address.
bool address_in(const std::string& directory, const std::string& device, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  const std::string path = directory + "/mount-" + device + ".takeover";
  if (path.size() >= sizeof address.sun_path) return false;
  std::memcpy(address.sun_path, path.data(), path.size());
  return true;
}

/// Returns -1 with errno on failure.
int connect_to(const sockaddr_un& address) {
  const int connection = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (connection >= 0 &&
      ::connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
    return connection;
  const int cause = errno;
  if (connection >= 0) ::close(connection);
  errno = cause;
  return -1;
}

/// Removes a socket that a killed supervisor left. False if somebody listens on it.
bool remove_dead(const sockaddr_un& address) {
  const int connection = connect_to(address);
  if (connection >= 0) ::close(connection);
  return connection < 0 && errno == ECONNREFUSED && ::unlink(address.sun_path) == 0;
}

}  // namespace

int listen_for_successor(const std::string& mountpoint) {
  const auto device = mounted_device(mountpoint);
  if (!device) return -1;
  sockaddr_un address;
  try {
    if (!address_in(handoff::private_directory(), *device, address)) return -1;
  } catch (const Error&) {
    return -1;
  }
  const int listener = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener < 0) return -1;
  const auto bind = [&] {
    return ::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  };
  const bool bound = bind() || (errno == EADDRINUSE && remove_dead(address) && bind());
  if (bound && ::listen(listener, 4) == 0) return listener;
  if (bound) ::unlink(address.sun_path);
  ::close(listener);
  return -1;
}

void stop_listening(int listener) {
  if (listener < 0) return;
  sockaddr_un address{};
  socklen_t size = sizeof address;
  if (::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) == 0)
    ::unlink(address.sun_path);
  ::close(listener);
}

int accept_successor(int listener) {
  const int connection = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  if (connection < 0 || handoff::is_own_peer(connection, false)) return connection;
  ::close(connection);
  return -1;
}

TakenSession ask_for_session(const std::string& mountpoint) {
  const auto fail = [&mountpoint](ErrorCode code, const std::string& why) -> Error {
    return {code, why, mountpoint};
  };
  const std::string path = require_batchfs_mount(mountpoint);
  const std::string device = mounted_device(path).value_or("");
  int connection = -1;
  // The supervisor may have run in another environment, and with it used another directory.
  for (const std::string& directory : handoff::private_directories()) {
    sockaddr_un address;
    if (!address_in(directory, device, address)) continue;
    connection = connect_to(address);
    if (connection >= 0 && handoff::is_own_peer(connection, false)) break;
    if (connection >= 0) ::close(std::exchange(connection, -1));
  }
  if (connection < 0)
    throw fail(ErrorCode::access_denied,
               "no supervisor of this user answers for the mount; unmount it and mount again");
  ::setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &kTakeoverTimeout, sizeof kTakeoverTimeout);
  auto answer = receive_packet(connection, true);
  if (!answer || answer->descriptors.size() != 2) {
    ::close(connection);
    throw fail(ErrorCode::not_supported,
               answer ? answer->text
                      : "the mount's supervisor does not answer; unmount it and mount again");
  }
  return {answer->descriptors[0].release(), answer->descriptors[1].release(), connection};
}

}  // namespace batchfs
