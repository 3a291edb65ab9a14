#pragma once
// Files that exist in memory only: batches are assembled in them, and readers get them without a
// copy.
//
// Filling fresh memory costs more than most decoders when it comes in 4 KB pages (0.9 GB/s a core
// was measured for a memfd, 14 GB/s with 2 MB pages), and readers that map it pay again. A memfd
// gets large pages only where the administrator has switched them on for all shared memory; a tmpfs
// of our own mounted with huge=always gets them anywhere. It is mounted detached: no path leads to
// it, and it ends with its last file. That takes CAP_SYS_ADMIN, as passthrough does; without it,
// memfd.
//
// Descriptors leave this process: readers map them, and may run as the same user or as root. No
// mode bits stop those, so readers get descriptors that cannot change a file: an open file of a
// second, read-only mount of the same tmpfs, where opening for writing (also through
// /proc/self/fd), fchmod(2), fchown(2) and the like are EROFS; or a sealed memfd. A file cannot
// shrink under a mapping then, which would kill the daemon, nor change under another reader.
//
// A file is written once and then sealed. Files that readers get through the mount are never used
// again: pages may be in a pipe or on their way to a socket (splice, sendfile) when nobody has the
// file open any more, and the daemon cannot see that. Files of the hand-off are reused: readers map
// them, and a lease shows whether any reader still does (fcntl(2), F_SETLEASE: a write lease is
// granted only where nobody else has the file open or mapped). Memory that was in use before needs
// no clearing and no page faults, which is a third of the time that uncompressed batches take.

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

  /// Seals the file: from now on nobody can write, resize or map writable through fd(), or a
  /// descriptor opened from it. Readers still see later writes to data(); for batches there are
  /// none.
  void seal();

 private:
  friend class MemoryFiles;
  void map(std::uint64_t size, std::uint64_t mapped);
  struct Spares;  // defined in the source
  int fd_ = -1;
  int own_fd_ = -1;  // can write; once sealed, of files that are used again
  int path_fd_ =
      -1;  // O_PATH, in the read-only mount: where seal() opens fd() for readers; none for memfds
  std::shared_ptr<Spares> spares_;  // where the file goes at its end, to be used again
  std::uint64_t size_ = 0, mapped_ = 0;
  std::byte* data_ = nullptr;
  bool memfd_ = false, sealed_ = false;
  /// The counter that its memory is in; see MemoryFiles::mapped_by_others().
  std::shared_ptr<std::atomic<std::uint64_t>> counted_;
};

/// Makes memory files. Thread-safe.
class MemoryFiles {
 public:
  /// `huge_pages`: use them where available.
  explicit MemoryFiles(bool huge_pages = true);
  ~MemoryFiles();
  MemoryFiles(const MemoryFiles&) = delete;
  MemoryFiles& operator=(const MemoryFiles&) = delete;

  /// All zeros. `name` shows in /proc for memfds. Throws no_memory.
  MemoryFile create(const char* name, std::uint64_t size) const;
  /// For readers that map the file and do nothing else with it. Reused memory keeps its old
  /// contents.
  MemoryFile create_reusable(const char* name, std::uint64_t size) const;
  /// Keeps up to this much memory of destroyed reusable files; 0, the initial value, releases it.
  void keep_spares(std::uint64_t bytes) const;
  /// Releases the kept files; returns the memory that they took.
  std::uint64_t drop_spares() const;
  std::uint64_t spare_bytes() const;
  /// The memory that a file of this size takes: its size, rounded up where it gets huge pages.
  std::uint64_t memory_of(std::uint64_t size) const;
  bool huge_pages() const { return mount_ >= 0; }
  /// Memory of destroyed files that readers still map: a lower bound. The tmpfs counts the memory
  /// of its files; 0 for memfds, which nothing counts.
  std::uint64_t mapped_by_others() const;

 private:
  MemoryFile create_memfd(const char* name, std::uint64_t size) const;
  MemoryFile create_in_mount(std::uint64_t size) const;

  int mount_ = -1;      // the detached tmpfs
  int read_only_ = -1;  // the same, mounted again without the right to write
  mutable std::atomic<std::uint64_t> last_name_{0};
  const std::shared_ptr<MemoryFile::Spares> spares_;
  const std::shared_ptr<std::atomic<std::uint64_t>> live_ =
      std::make_shared<std::atomic<std::uint64_t>>(0);
};

}  // namespace batchfs
