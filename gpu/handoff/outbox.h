#pragma once
// Messages on their way to one reader, which wait where its socket takes no more.

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "engine/pipeline/memory_file.h"

namespace batchfs::handoff {

/// A message with the descriptors that it passes.
struct Outgoing {
  std::vector<std::byte> bytes;
  std::vector<int> descriptors;
  std::shared_ptr<const void> held;             // owns the descriptors
  std::shared_ptr<const MemoryFile> windows{};  // owns the last one
};

/// Used by one thread.
class Outbox {
 public:
  /// The socket stays the caller's.
  explicit Outbox(int socket) : socket_(socket) {}

  void add(Outgoing message) { messages_.push_back(std::move(message)); }
  /// Drops unsent messages.
  void clear() { messages_.clear(); }

  /// Sends as much as the socket takes, without waiting. False if the reader is gone.
  bool flush();

  bool empty() const { return messages_.empty(); }
  /// The reader takes nothing: it is not listened to until it does.
  bool full() const { return messages_.size() >= kMost; }
  /// Too many descriptors are in flight on this machine: call flush() again soon.
  bool short_of_descriptors() const { return short_of_descriptors_; }

 private:
  static constexpr std::size_t kMost = 256;

  const int socket_;
  std::deque<Outgoing> messages_;
  bool short_of_descriptors_ = false;
};

}  // namespace batchfs::handoff
