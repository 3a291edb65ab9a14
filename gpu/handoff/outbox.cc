#include "gpu/handoff/outbox.h"

#include <cerrno>

#include <sys/socket.h>

#include "engine/base/descriptor_passing.h"

namespace batchfs::handoff {

bool Outbox::flush() {
  short_of_descriptors_ = false;
  while (!messages_.empty()) {
    const Outgoing& out = messages_.front();
    const ssize_t sent = send_passing(socket_, out.bytes, out.descriptors, MSG_DONTWAIT);
    if (sent < 0 && errno == EAGAIN) return true;
    if (sent < 0 && (errno == ETOOMANYREFS || errno == ENOBUFS || errno == ENOMEM)) {
      short_of_descriptors_ = true;
      return true;
    }
    if (sent < 0) return false;
    messages_.pop_front();
  }
  return true;
}

}  // namespace batchfs::handoff
