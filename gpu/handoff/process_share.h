#pragma once
// What one process holds over all of its connections, and the share of the server's memory and
// descriptors that it may hold: one that stops, or keeps every batch, must leave batches for the
// others. Used in the server's thread only.

#include <cstddef>
#include <cstdint>

namespace batchfs::handoff {

class ProcessShare {
 public:
  /// `most_batches`: what the server's descriptors and mappings are enough for, in batches of one
  /// process.
  explicit ProcessShare(std::size_t most_batches) : most_batches_(most_batches) {}

  /// A batch is made or held; it may lie in so many bytes of host memory.
  void take(std::uint64_t bytes);
  /// It turned out to lie in device memory.
  void leave_host(std::uint64_t bytes) { bytes_ -= bytes; }
  /// It is released: `bytes` of host memory, 0 after leave_host().
  void give_back(std::uint64_t bytes);

  /// Fits another batch of so many bytes, of `limit` bytes of host memory? Half of them are for a
  /// process, three quarters where the connection that asks (`first`) holds none; two batches
  /// always, where there is room for three.
  bool fits(std::uint64_t bytes, std::uint64_t limit, bool first) const;
  /// Fits another one that nobody waits for yet? Connections share what their process may hold.
  bool fits_ahead(std::uint64_t bytes, std::uint64_t limit) const;

  std::size_t batches() const { return batches_; }
  std::uint64_t bytes() const { return bytes_; }

  std::size_t connections = 0;

 private:
  const std::size_t most_batches_;
  std::size_t batches_ = 0;
  std::uint64_t bytes_ = 0;  // of host memory
};

/// Batches that one process may hold, whatever their size, so that the descriptors and mappings of
/// this process are enough for others too.
std::size_t most_batches_of_process();

}  // namespace batchfs::handoff
