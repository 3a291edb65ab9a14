#include "engine/base/descriptor_passing.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/socket.h>

namespace batchfs {

namespace {

constexpr std::size_t kControlBytes = CMSG_SPACE(kMaxPassedDescriptors * sizeof(int));

/// Takes all that the kernel installed.
void take_descriptors(msghdr& message, std::vector<Descriptor>& descriptors) {
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
      descriptors.emplace_back(fd);
    }
  }
}

}  // namespace

ssize_t send_passing(int socket, std::span<const std::byte> bytes, std::span<const int> descriptors,
                     int flags) {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[kControlBytes] = {};
  if (descriptors.size() > kMaxPassedDescriptors) {
    errno = EINVAL;
    return -1;
  }
  if (!descriptors.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  }
  for (;;) {
    const ssize_t sent = ::sendmsg(socket, &message, flags | MSG_NOSIGNAL);
    if (sent >= 0 || errno != EINTR) return sent;
  }
}

PassedMessage receive_passed(int socket, std::span<std::byte> buffer, std::size_t max_descriptors,
                             int flags) {
  max_descriptors = std::min(max_descriptors, kMaxPassedDescriptors);
  PassedMessage received;
  // Before any descriptor exists that would be lost for lack of memory.
  received.descriptors.reserve(kControlBytes / sizeof(int));
  for (bool was_reset = false;;) {
    iovec part{buffer.data(), buffer.size()};
    alignas(cmsghdr) char control[kControlBytes];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = max_descriptors == 0 ? 0 : CMSG_SPACE(max_descriptors * sizeof(int));
    received.size = ::recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
    if (received.size < 0 && errno == EINTR) continue;
    if (received.size < 0 && errno == ECONNRESET && !std::exchange(was_reset, true)) continue;
    if (received.size <= 0) return received;
    take_descriptors(message, received.descriptors);
    // The kernel's space is rounded up: it may have room for one more.
    if ((message.msg_flags & MSG_CTRUNC) != 0 || received.descriptors.size() > max_descriptors)
      received.cut = PassedMessage::Cut::descriptors;
    if ((message.msg_flags & MSG_TRUNC) != 0) received.cut = PassedMessage::Cut::bytes;
    if (received.cut != PassedMessage::Cut::none) received.descriptors.clear();
    return received;
  }
}

}  // namespace batchfs
