#pragma once
// Messages with descriptors over a socket, for threads that may wait. Used by both sides of the
// programs' sockets.

#include <cstddef>
#include <span>
#include <vector>

#include "engine/base/descriptor.h"

namespace batchfs::handoff {

/// Waits for room. False when the other side is gone.
bool send_message(int socket, std::span<const std::byte> bytes,
                  std::span<const int> descriptors = {});

struct ReceivedMessage {
  std::vector<std::byte> bytes;
  std::vector<Descriptor> descriptors;
};

/// Waits for a message. Returns false if the other side is gone, or sent a message that is longer
/// than `longest`, carries more than kMaxDescriptors, or contradicts its header's length.
bool receive_message(int socket, std::size_t longest, ReceivedMessage& message);

}  // namespace batchfs::handoff
