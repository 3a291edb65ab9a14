#pragma once
// The reader's end of the hand-off's socket, and its messages as bytes.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <span>
#include <vector>

#include <sys/types.h>

#include "gpu/handoff/protocol.h"
#include "gpu/reader/source.h"

namespace batchfs::reader {

/// How long the server may take to answer a greeting, or to take a message.
inline constexpr int kGreetingMilliseconds = 10'000;
/// Interval of a waiting call's checks for interruption: signals may go to other threads.
inline constexpr int kLookMilliseconds = 200;
/// How long to wait for batches that a GPU still works on, and for a server to notice that its
/// reader leaves.
inline constexpr std::chrono::milliseconds kPatience{1000};

template <class Message>
Message make(handoff::MessageType type) {
  Message message{};
  message.header = {sizeof message, type, handoff::kVersion};
  return message;
}

template <class Message>
Message read_as(std::span<const std::byte> bytes) {
  Message message;
  if (bytes.size() < sizeof message) throw Lost{"a message of the server is too short"};
  std::memcpy(&message, bytes.data(), sizeof message);
  return message;
}

/// A connection. Lives as long as any batch that came over it: its end releases them all. It waits,
/// up to a second, until the server has noticed: a server that ends with its last reader takes no
/// other then, which would get the state of the store that this one had.
class Link {
 public:
  explicit Link(int socket);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  int socket() const { return socket_; }
  /// Sends a message, waiting for room. Throws Lost. Thread-safe, as is release().
  void send(const void* message, std::size_t size);
  /// Returns a lease, now or with the next message. Never waits, never fails.
  void release(std::uint64_t lease);

 private:
  bool send_releases();
  void wait_for_end();

  const int socket_;
  const pid_t process_;  // a child after fork() is another reader: the leases are its parent's
  std::mutex mutex_;     // guards the members below
  std::vector<std::uint64_t> released_;  // not yet sent
};

}  // namespace batchfs::reader
