#pragma once
// The version tables in the memory of a session: one for each reading of the store that is in use.
//
// A store that is read again has other versions, and readings live beside each other: each has a
// table in a slot of its own. A table locks its slot in the file (an open file description lock),
// so that every process that shares the memory knows which slots are free: a process that is killed
// leaves no lock. The slot of the newest reading stays as it is without a lock, for the process
// that takes over.

#include <cstdint>
#include <memory>

#include "engine/store/version_table.h"

namespace batchfs {

/// Thread-safe.
class VersionSlots {
 public:
  /// More than there are readings in one process, and in two while one replaces the other.
  static constexpr std::uint32_t kCount = 24;
  /// Address space in the file, few pages of which are touched.
  static const std::uint64_t kBytes;

  /// In `kBytes` of a file from `offset` on, a multiple of the page size: zeros, or the contents
  /// that earlier processes left. The descriptor outlives it.
  VersionSlots(int fd, std::uint64_t offset) : fd_(fd), offset_(offset) {}

  struct Table {
    std::uint32_t slot = 0;
    std::shared_ptr<VersionTable> table;
  };
  /// The table in a slot, with its entries. Null while another process takes the slot.
  std::shared_ptr<VersionTable> open(std::uint32_t slot) const;
  /// An empty table in a free slot other than `kept`, the newest reading's. Releases the memory of
  /// all free slots. Throws no_memory.
  Table take(std::uint32_t kept) const;

 private:
  std::uint64_t position(std::uint32_t slot) const;

  const int fd_;
  const std::uint64_t offset_;
};

}  // namespace batchfs
