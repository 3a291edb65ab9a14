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

/// Waits for a message. False when the other side is gone, or sent one that is longer than
/// `longest` or carries more than kMaxDescriptors, or whose header says another length.
bool receive_message(int socket, std::size_t longest, ReceivedMessage& message);

}  // namespace batchfs::handoff
