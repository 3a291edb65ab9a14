#include "gpu/handoff/messages.h"

#include <cerrno>
#include <cstring>

#include <unistd.h>

#include "engine/base/descriptor_passing.h"
#include "gpu/handoff/protocol.h"

namespace batchfs::handoff {

static_assert(kMaxDescriptors <= kMaxPassedDescriptors);

bool send_message(int socket, std::span<const std::byte> bytes, std::span<const int> descriptors) {
  for (;;) {
    if (send_passing(socket, bytes, descriptors) >= 0) return true;
    if (errno != ETOOMANYREFS && errno != ENOBUFS && errno != ENOMEM) return false;
    ::usleep(1000);  // descriptors of other sockets are in flight
  }
}

bool receive_message(int socket, std::size_t longest, ReceivedMessage& message) {
  message.bytes.resize(longest);
  PassedMessage received = receive_passed(socket, message.bytes, kMaxDescriptors);
  if (received.size <= 0 || received.cut != PassedMessage::Cut::none) return false;
  message.descriptors = std::move(received.descriptors);
  message.bytes.resize(static_cast<std::size_t>(received.size));
  Header header;
  if (message.bytes.size() < sizeof header) return false;
  std::memcpy(&header, message.bytes.data(), sizeof header);
  return header.length == message.bytes.size();
}

}  // namespace batchfs::handoff
