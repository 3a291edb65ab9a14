#include "tools/takeover.h"

#include <cerrno>
#include <cstddef>
#include <cstring>

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "tools/mounts.h"
#include "tools/packets.h"

namespace batchfs {

namespace {

/// What the other side has to answer; a supervisor does nothing that takes long.
constexpr timeval kPatience{30, 0};

socklen_t address_of(const std::string& device, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  const std::string name = "batchfs-mount-" + device;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

bool is_same_user(int connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::geteuid();
}

}  // namespace

int listen_for_successor(const std::string& mountpoint) {
  const auto device = mounted_device(mountpoint);
  if (!device) return -1;
  sockaddr_un address;
  const socklen_t size = address_of(*device, address);
  const int listener = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener >= 0 && ::bind(listener, reinterpret_cast<const sockaddr*>(&address), size) == 0 && ::listen(listener, 4) == 0)
    return listener;
  if (listener >= 0) ::close(listener);
  return -1;
}

int accept_successor(int listener) {
  const int connection = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  if (connection < 0 || is_same_user(connection)) return connection;
  ::close(connection);
  return -1;
}

TakenSession ask_for_session(const std::string& mountpoint) {
  const auto fail = [&mountpoint](ErrorCode code, const std::string& why) -> Error { return {code, why, mountpoint}; };
  const std::string path = require_batchfs_mount(mountpoint);
  sockaddr_un address;
  const socklen_t size = address_of(mounted_device(path).value_or(""), address);
  const int connection = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (connection < 0) throw fail(ErrorCode::io, std::strerror(errno));
  ::setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  if (::connect(connection, reinterpret_cast<const sockaddr*>(&address), size) != 0 || !is_same_user(connection)) {
    ::close(connection);
    throw fail(ErrorCode::access_denied, "no supervisor of this user answers for the mount; unmount it and mount again");
  }
  const auto answer = receive_packet(connection, true);
  if (!answer || answer->descriptors.size() != 2) {
    for (const int descriptor : answer ? answer->descriptors : std::vector<int>{}) ::close(descriptor);
    ::close(connection);
    throw fail(ErrorCode::not_supported, answer ? answer->text : "the mount's supervisor does not answer; unmount it and mount again");
  }
  return {answer->descriptors[0], answer->descriptors[1], connection};
}

}  // namespace batchfs
