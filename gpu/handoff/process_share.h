#pragma once
// Accounts what one process holds over all of its connections, and limits its share of the server's
// memory and descriptors: a process that stops, or keeps every batch, must leave batches for the
// others. Used in the server's thread only.

#include <cstddef>
#include <cstdint>

namespace batchfs::handoff {

class ProcessShare {
 public:
  /// `most_batches`: batches of one process for which the server's descriptors and mappings
  /// suffice.
  explicit ProcessShare(std::size_t most_batches) : most_batches_(most_batches) {}

  /// A batch is made or held; it may take `bytes` of host memory.
  void take(std::uint64_t bytes);
  /// The batch turned out to lie in device memory.
  void leave_host(std::uint64_t bytes) { bytes_ -= bytes; }
  /// The batch is released: `bytes` of host memory, 0 after leave_host().
  void give_back(std::uint64_t bytes);

  /// Does another batch of `bytes` bytes fit, within `limit` bytes of host memory? A process gets
  /// half of them, or three quarters if the connection that asks holds no batch (`first`); always
  /// two batches if there is room for three.
  bool fits(std::uint64_t bytes, std::uint64_t limit, bool first) const;
  /// Does another batch fit that nobody waits for yet? A process's connections share its limit.
  bool fits_ahead(std::uint64_t bytes, std::uint64_t limit) const;

  std::size_t batches() const { return batches_; }
  std::uint64_t bytes() const { return bytes_; }

  std::size_t connections = 0;

 private:
  const std::size_t most_batches_;
  std::size_t batches_ = 0;
  std::uint64_t bytes_ = 0;  // of host memory
};

/// Batches that one process may hold, whatever their size, so that this process's descriptors and
/// mappings suffice for others, too.
std::size_t most_batches_of_process();

}  // namespace batchfs::handoff
