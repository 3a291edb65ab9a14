#pragma once
// Messages with file descriptors over Unix sockets (SCM_RIGHTS, see unix(7)), one system call each.
// Also part of the reader's library, so it needs the C++ runtime only.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <sys/types.h>

#include "engine/base/descriptor.h"

namespace batchfs {

/// Descriptors that one message may carry.
inline constexpr std::size_t kMaxPassedDescriptors = 16;

/// Sends one message. `flags`: of sendmsg(2), to which MSG_NOSIGNAL is added. Returns what
/// sendmsg(2) does: the bytes sent, or -1 with errno; never EINTR. The descriptors stay the
/// caller's. Precondition: at most kMaxPassedDescriptors, and at least one byte.
ssize_t send_passing(int socket, std::span<const std::byte> bytes,
                     std::span<const int> descriptors = {}, int flags = 0);

struct PassedMessage {
  enum class Cut : std::uint8_t {
    none,
    bytes,        // it is longer than the buffer; the rest is lost
    descriptors,  // it carries too many, or this process cannot open more files
  };

  // bytes received; 0: the peer closed the connection; -1: errno holds the reason
  ssize_t size = -1;
  Cut cut = Cut::none;
  std::vector<Descriptor> descriptors;  // close-on-exec; none of a message that was cut
};

/// Receives one message into `buffer`, with at most `max_descriptors`. `flags`: of recvmsg(2).
/// Never fails with EINTR. Nor with ECONNRESET while the peer's last messages can be read: messages
/// that the peer left unread must not cost its own.
PassedMessage receive_passed(int socket, std::span<std::byte> buffer,
                             std::size_t max_descriptors = kMaxPassedDescriptors, int flags = 0);

}  // namespace batchfs
