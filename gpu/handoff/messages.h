#pragma once
// Messages with descriptors over a socket, for threads that may wait. Used by both sides of the
// programs' sockets.

#include <cstddef>
#include <span>
#include <vector>

namespace batchfs::handoff {

/// Waits for room. False when the other side is gone.
bool send_message(int socket, std::span<const std::byte> bytes,
                  std::span<const int> descriptors = {});

/// A message and its descriptors, which it owns.
struct ReceivedMessage {
  std::vector<std::byte> bytes;
  std::vector<int> descriptors;

  ReceivedMessage() = default;
  ~ReceivedMessage();
  ReceivedMessage(const ReceivedMessage&) = delete;
  ReceivedMessage& operator=(const ReceivedMessage&) = delete;
};

/// Waits for a message. False when the other side is gone, or sent one that is longer than
/// `longest` or whose header says another length.
bool receive_message(int socket, std::size_t longest, ReceivedMessage& message);

}  // namespace batchfs::handoff
