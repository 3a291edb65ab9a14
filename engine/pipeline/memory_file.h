#pragma once
// Files that exist in memory only: what a batch is assembled in and what readers get, without a copy.
//
// Filling fresh memory costs more than most decoders when it comes in 4 KB pages (0.9 GB/s a core was
// measured for a memfd, 14 GB/s with 2 MB pages), and readers that map it pay again. A memfd gets large
// pages only where the administrator has switched them on for all shared memory; a tmpfs of our own
// mounted with huge=always gets them anywhere. It is mounted detached: no path leads to it, and it goes
// with its last file. That takes CAP_SYS_ADMIN, as passthrough does; without it, memfd.
//
// A file is written once and then sealed. It is never reused: with FUSE passthrough a reader may map it
// long after it closed its file, and the daemon cannot see that.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace batchfs {

class MemoryFile {
 public:
  MemoryFile() = default;
  ~MemoryFile();
  MemoryFile(MemoryFile&& other) noexcept;
  MemoryFile& operator=(MemoryFile&& other) noexcept;

  int fd() const { return fd_; }
  std::uint64_t size() const { return size_; }
  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::span<const std::byte> span() const { return {data_, size_}; }

  /// From here on fd() cannot write, resize or map writable. data() must not be written any more.
  void seal();

 private:
  friend class MemoryFiles;
  int fd_ = -1;
  std::uint64_t size_ = 0, mapped_ = 0;
  std::byte* data_ = nullptr;
  bool memfd_ = false;
  std::shared_ptr<std::atomic<std::uint64_t>> counted_;  // where its memory counts; MemoryFiles::mapped_by_others()
};

/// Makes memory files. Thread-safe.
class MemoryFiles {
 public:
  /// `huge_pages`: use them where they can be had.
  explicit MemoryFiles(bool huge_pages = true);
  ~MemoryFiles();
  MemoryFiles(const MemoryFiles&) = delete;
  MemoryFiles& operator=(const MemoryFiles&) = delete;

  /// `name` shows in /proc for memfds. Throws no_memory.
  MemoryFile create(const char* name, std::uint64_t size) const;
  /// The memory that a file of this size takes: its size, rounded up where it gets huge pages.
  std::uint64_t memory_of(std::uint64_t size) const;
  bool huge_pages() const { return mount_ >= 0; }
  /// Memory of files that are gone from here but that readers still map: at least this much. The tmpfs knows what its
  /// files take; 0 for memfds, of which nobody does.
  std::uint64_t mapped_by_others() const;

 private:
  int mount_ = -1;  // the detached tmpfs
  const std::shared_ptr<std::atomic<std::uint64_t>> live_ = std::make_shared<std::atomic<std::uint64_t>>(0);
};

}  // namespace batchfs
