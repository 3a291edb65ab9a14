#include "engine/pipeline/memory_file.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "engine/base/system_error.h"

namespace batchfs {

namespace {

constexpr std::uint64_t kHugePage = 2 << 20;

[[noreturn]] void cannot(const char* what) {
  throw Error(ErrorCode::no_memory, std::string(what) + ": " + describe_system_error(errno));
}

std::uint64_t whole_huge_pages(std::uint64_t size) {
  return (size + kHugePage - 1) / kHugePage * kHugePage;
}

/// Small files in huge pages would waste most of them; a third is worth it.
bool deserves_huge_pages(std::uint64_t size) { return whole_huge_pages(size) - size <= size / 2; }

// System calls by number: glibc has the wrappers since 2.36 only.

/// A tmpfs that backs every file with huge pages, mounted nowhere; -1 where that is not allowed.
int mount_huge_tmpfs() {
  const int context = static_cast<int>(::syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC));
  if (context < 0) return -1;
  int mount = -1;
  const auto set = [context](const char* key, const char* value) {
    return ::syscall(SYS_fsconfig, context, FSCONFIG_SET_STRING, key, value, 0) == 0;
  };
  // The memory budget is the limit. This limit is never reached, but without one tmpfs would not
  // count its used memory.
  if (set("huge", "always") && set("size", "1152921504606846976") && set("nr_inodes", "0") &&
      set("mode", "0700") &&
      ::syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) == 0)
    mount = static_cast<int>(::syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC,
                                       MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC));
  ::close(context);
  return mount;
}

/// Sets the calling thread's copy of the mounts apart, so that nothing it mounts is seen elsewhere.
bool leave_mount_namespace() {
  mount_attr apart{};
  apart.propagation = MS_PRIVATE;
  return ::unshare(CLONE_NEWNS) == 0 &&
         ::syscall(SYS_mount_setattr, AT_FDCWD, "/", AT_RECURSIVE, &apart, sizeof apart) == 0;
}

/// The same file system mounted nowhere a second time, for reading only; -1 where that is not
/// allowed. `mount` is used as before.
int mount_read_only(int mount) {
  int clone = -1;
  // Until Linux 6.15, only a mount that lies in the caller's mount namespace can be cloned. A
  // thread's own namespace ends with the thread, and the mount is then detached again.
  std::thread([mount, &clone] {
    if (!leave_mount_namespace() ||
        ::syscall(SYS_move_mount, mount, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) != 0)
      return;
    clone = static_cast<int>(
        ::syscall(SYS_open_tree, mount, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH));
    mount_attr read_only{};
    read_only.attr_set = MOUNT_ATTR_RDONLY;
    if (clone >= 0 &&
        ::syscall(SYS_mount_setattr, clone, "", AT_EMPTY_PATH, &read_only, sizeof read_only) != 0)
      ::close(std::exchange(clone, -1));
  }).join();
  return clone;
}

/// The same file for reading only; -1 without /proc.
int reopen_read_only(int fd) {
  // Not blocking: a reader that took a lease on the file would stop the open for as long as leases
  // are good.
  return ::open(("/proc/self/fd/" + std::to_string(fd)).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

/// True when no other process has the file open or mapped: both keep an open file, and a write
/// lease is granted only to the sole holder.
bool nobody_else_has(int fd, bool memfd) {
  // The kernel does not count a memfd itself as opened for writing; a lease on another open file is
  // judged rightly.
  const int judged = memfd ? reopen_read_only(fd) : fd;
  // Opening the file while the lease is held makes the kernel send a signal: a harmless one instead
  // of SIGIO, which ends processes.
  const bool alone = judged >= 0 && ::fcntl(judged, F_SETSIG, SIGURG) == 0 &&
                     ::fcntl(judged, F_SETLEASE, F_WRLCK) == 0;
  if (alone) ::fcntl(judged, F_SETLEASE, F_UNLCK);
  if (memfd && judged >= 0) ::close(judged);
  return alone;
}

}  // namespace

/// Files that nobody has here any more, the oldest first.
struct MemoryFile::Spares {
  void keep(MemoryFile file) {
    std::vector<MemoryFile> dropped;  // destroyed after the lock is released
    const std::lock_guard lock(mutex);
    bytes += file.mapped_;
    files.push_back(std::move(file));
    shrink(dropped);
  }
  std::uint64_t shrink_to(std::uint64_t limit, bool from_now_on) {
    std::vector<MemoryFile> dropped;
    const std::lock_guard lock(mutex);
    const std::uint64_t before = bytes, after = std::exchange(most, limit);
    shrink(dropped);
    if (!from_now_on) most = after;
    return before - bytes;
  }
  void shrink(std::vector<MemoryFile>& dropped) {
    while (bytes > most) {
      bytes -= files.front().mapped_;
      dropped.push_back(std::move(files.front()));
      files.pop_front();
    }
  }
  /// One of this size that nobody has open or mapped.
  std::optional<MemoryFile> take(std::uint64_t size) {
    const std::lock_guard lock(mutex);
    for (auto it = files.begin(); it != files.end(); ++it) {
      if (it->size_ != size || !nobody_else_has(it->fd_, it->memfd_)) continue;
      MemoryFile file = std::move(*it);
      files.erase(it);
      bytes -= file.mapped_;
      return file;
    }
    return std::nullopt;
  }

  std::mutex mutex;
  std::uint64_t most = 0, bytes = 0;
  std::deque<MemoryFile> files;
};

MemoryFile::~MemoryFile() {
  if (spares_ != nullptr && data_ != nullptr) {
    if (own_fd_ >= 0) {
      ::close(fd_);
      fd_ = std::exchange(own_fd_, -1);
    }
    const std::shared_ptr<Spares> spares = std::exchange(spares_, nullptr);
    spares->keep(std::move(*this));
  }
  if (own_fd_ >= 0) ::close(own_fd_);
  if (path_fd_ >= 0) ::close(path_fd_);
  if (data_ != nullptr) ::munmap(data_, mapped_);
  if (fd_ >= 0) ::close(fd_);
  if (counted_ != nullptr) counted_->fetch_sub(whole_huge_pages(size_), std::memory_order_relaxed);
}

MemoryFile::MemoryFile(MemoryFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      own_fd_(std::exchange(other.own_fd_, -1)),
      path_fd_(std::exchange(other.path_fd_, -1)),
      spares_(std::move(other.spares_)),
      size_(std::exchange(other.size_, 0)),
      mapped_(std::exchange(other.mapped_, 0)),
      data_(std::exchange(other.data_, nullptr)),
      memfd_(other.memfd_),
      sealed_(other.sealed_),
      counted_(std::move(other.counted_)) {}

MemoryFile& MemoryFile::operator=(MemoryFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(own_fd_, other.own_fd_);
  std::swap(path_fd_, other.path_fd_);
  std::swap(spares_, other.spares_);
  std::swap(size_, other.size_);
  std::swap(mapped_, other.mapped_);
  std::swap(data_, other.data_);
  std::swap(memfd_, other.memfd_);
  std::swap(sealed_, other.sealed_);
  std::swap(counted_, other.counted_);
  return *this;
}

/// Sizes the new file and maps it.
void MemoryFile::map(std::uint64_t size, std::uint64_t mapped) {
  if (::ftruncate(fd_, static_cast<off_t>(size)) != 0) cannot("a memory file of this size");
  size_ = size;
  if (size == 0) return;
  void* data = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (data == MAP_FAILED) cannot("mapping a memory file");
  mapped_ = mapped;
  data_ = static_cast<std::byte*>(data);
}

void MemoryFile::seal() {
  const auto fail = [] {
    return Error(ErrorCode::internal,
                 std::string("sealing a memory file: ") + std::strerror(errno));
  };
  // FUTURE_WRITE, not WRITE: the latter is refused while our own mapping is writable. Nobody else
  // has one.
  if (!std::exchange(sealed_, true) && memfd_ &&
      ::fcntl(fd_, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) !=
          0)
    throw fail();
  // Descriptors that are passed on share an open file; a lease detects other open files only.
  if (memfd_ && spares_ == nullptr) return;
  const int read_only = reopen_read_only(memfd_ ? fd_ : path_fd_);
  if (read_only < 0) throw fail();
  if (spares_ != nullptr) {
    own_fd_ = fd_;
  } else {
    ::close(fd_);
    if (path_fd_ >= 0) ::close(std::exchange(path_fd_, -1));
  }
  fd_ = read_only;
}

MemoryFiles::MemoryFiles(bool huge_pages) : spares_(std::make_shared<MemoryFile::Spares>()) {
  if (!huge_pages) return;
  mount_ = mount_huge_tmpfs();
  if (mount_ < 0) return;
  read_only_ = mount_read_only(mount_);
  // The operations of create() and seal() must work here.
  bool works = read_only_ >= 0;
  try {
    if (works) create_in_mount(0).seal();
  } catch (const Error&) {
    works = false;
  }
  if (works) return;
  ::close(std::exchange(mount_, -1));
  if (read_only_ >= 0) ::close(std::exchange(read_only_, -1));
}

MemoryFiles::~MemoryFiles() {
  spares_->shrink_to(0, true);
  if (mount_ >= 0) ::close(mount_);
  if (read_only_ >= 0) ::close(read_only_);
}

MemoryFile MemoryFiles::create(const char* name, std::uint64_t size) const {
  return mount_ < 0 || !deserves_huge_pages(size) ? create_memfd(name, size)
                                                  : create_in_mount(size);
}

MemoryFile MemoryFiles::create_memfd(const char* name, std::uint64_t size) const {
  MemoryFile file;
  file.memfd_ = true;
  file.fd_ = ::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file.fd_ < 0) cannot("making a memory file");
  file.map(size, size);
  // Needed where shmem_enabled is "advise".
  if (size >= kHugePage) ::madvise(file.data_, size, MADV_HUGEPAGE);
  return file;
}

MemoryFile MemoryFiles::create_in_mount(std::uint64_t size) const {
  MemoryFile file;
  // A name, for as long as it takes to open the file in both mounts.
  const std::string name = std::to_string(++last_name_);
  file.fd_ = ::openat(mount_, name.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  if (file.fd_ < 0) cannot("making a memory file");
  file.path_fd_ = ::openat(read_only_, name.c_str(), O_PATH | O_CLOEXEC);
  const int cause = errno;
  ::unlinkat(mount_, name.c_str(), 0);
  errno = cause;
  if (file.path_fd_ < 0) cannot("making a memory file");
  file.size_ = size;
  file.counted_ = live_;
  live_->fetch_add(whole_huge_pages(size), std::memory_order_relaxed);
  // A huge page is mapped as one only where the whole of it lies in the mapping, beyond the file's
  // end too: filling 1.7 MB takes 50 us then, and 1 ms with a fault for each small page.
  file.map(size, whole_huge_pages(size));
  return file;
}

MemoryFile MemoryFiles::create_reusable(const char* name, std::uint64_t size) const {
  std::optional<MemoryFile> spare = spares_->take(size);
  MemoryFile file = spare ? std::move(*spare) : create(name, size);
  file.spares_ = spares_;
  return file;
}

void MemoryFiles::keep_spares(std::uint64_t bytes) const { spares_->shrink_to(bytes, true); }

std::uint64_t MemoryFiles::drop_spares() const { return spares_->shrink_to(0, false); }

std::uint64_t MemoryFiles::spare_bytes() const {
  const std::lock_guard lock(spares_->mutex);
  return spares_->bytes;
}

std::uint64_t MemoryFiles::mapped_by_others() const {
  struct statfs now {};
  if (mount_ < 0) return 0;
  // Before and after: a file that is created or destroyed meanwhile would look as if another
  // process had it.
  const std::uint64_t before = live_->load();
  if (::fstatfs(mount_, &now) != 0) return 0;
  const std::uint64_t used = (now.f_blocks - now.f_bfree) * static_cast<std::uint64_t>(now.f_bsize);
  const std::uint64_t live = std::max(before, live_->load());
  return used - std::min(used, live);
}

std::uint64_t MemoryFiles::memory_of(std::uint64_t size) const {
  if (mount_ < 0 || !deserves_huge_pages(size)) return size;
  return whole_huge_pages(size);
}

}  // namespace batchfs
