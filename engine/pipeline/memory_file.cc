#include "engine/pipeline/memory_file.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/base/error.h"

namespace batchfs {

MemoryFile::MemoryFile(const char* name, std::uint64_t size) : size_(size) {
  auto fail = [this](const char* what) {
    const int cause = errno;
    if (fd_ >= 0) ::close(fd_);
    throw Error(ErrorCode::no_memory, std::string(what) + ": " + std::strerror(cause));
  };
  fd_ = ::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd_ < 0) fail("memfd_create");
  if (::ftruncate(fd_, static_cast<off_t>(size)) != 0) fail("a memory file of this size");
  if (size == 0) return;
  void* mapped = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (mapped == MAP_FAILED) fail("mapping a memory file");
  data_ = static_cast<std::byte*>(mapped);
  // Two-megabyte pages where shmem_enabled allows: fewer faults here and for readers that map it.
  constexpr std::uint64_t kHugePage = 2 << 20;
  if (size >= kHugePage) ::madvise(data_, size, MADV_HUGEPAGE);
}

MemoryFile::~MemoryFile() {
  if (data_ != nullptr) ::munmap(data_, size_);
  if (fd_ >= 0) ::close(fd_);
}

MemoryFile::MemoryFile(MemoryFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      size_(std::exchange(other.size_, 0)),
      data_(std::exchange(other.data_, nullptr)) {}

MemoryFile& MemoryFile::operator=(MemoryFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(size_, other.size_);
  std::swap(data_, other.data_);
  return *this;
}

void MemoryFile::seal() {
  // FUTURE_WRITE, not WRITE: the latter is refused while our own mapping is writable.
  if (::fcntl(fd_, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    throw Error(ErrorCode::internal, std::string("sealing a memory file: ") + std::strerror(errno));
}

}  // namespace batchfs
