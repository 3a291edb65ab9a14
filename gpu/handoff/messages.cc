#include "gpu/handoff/messages.h"

#include <cerrno>
#include <cstring>

#include <sys/socket.h>
#include <unistd.h>

#include "gpu/handoff/protocol.h"

namespace batchfs::handoff {

bool send_message(int socket, std::span<const std::byte> bytes, std::span<const int> descriptors) {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))] = {};
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
    if (::sendmsg(socket, &message, MSG_NOSIGNAL) >= 0) return true;
    if (errno == ETOOMANYREFS || errno == ENOBUFS || errno == ENOMEM)
      ::usleep(1000);  // others' descriptors are under way
    else if (errno != EINTR)
      return false;
  }
}

ReceivedMessage::~ReceivedMessage() {
  for (const int fd : descriptors) ::close(fd);
}

bool receive_message(int socket, std::size_t longest, ReceivedMessage& message) {
  message.bytes.resize(longest);
  for (bool was_reset = false;;) {
    iovec part{message.bytes.data(), message.bytes.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))];
    msghdr out{};
    out.msg_iov = &part;
    out.msg_iovlen = 1;
    out.msg_control = control;
    out.msg_controllen = sizeof control;
    const ssize_t got = ::recvmsg(socket, &out, MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == ECONNRESET &&
        !was_reset) {  // the peer left messages unread: its own are still here
      was_reset = true;
      continue;
    }
    if (got <= 0) return false;
    for (cmsghdr* header = CMSG_FIRSTHDR(&out); header != nullptr;
         header = CMSG_NXTHDR(&out, header)) {
      if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
      const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      const std::size_t before = message.descriptors.size();
      message.descriptors.resize(before + count);
      std::memcpy(message.descriptors.data() + before, CMSG_DATA(header), count * sizeof(int));
    }
    if ((out.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) return false;
    message.bytes.resize(static_cast<std::size_t>(got));
    Header header;
    if (message.bytes.size() < sizeof header) return false;
    std::memcpy(&header, message.bytes.data(), sizeof header);
    return header.length == message.bytes.size();
  }
}

}  // namespace batchfs::handoff
