#pragma once
// A file that exists in memory only (memfd): what a batch is assembled in and what readers get, without
// a copy.
//
// It is written once and then sealed. It is never reused: with FUSE passthrough a reader may map it long
// after it closed its file, and the daemon cannot see that.

#include <cstddef>
#include <cstdint>
#include <span>

namespace batchfs {

class MemoryFile {
 public:
  MemoryFile() = default;
  /// `name` shows in /proc. Throws no_memory.
  MemoryFile(const char* name, std::uint64_t size);
  ~MemoryFile();
  MemoryFile(MemoryFile&& other) noexcept;
  MemoryFile& operator=(MemoryFile&& other) noexcept;

  int fd() const { return fd_; }
  std::uint64_t size() const { return size_; }
  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::span<const std::byte> span() const { return {data_, size_}; }

  /// No one can write, shrink or grow it any more, nor map it writable.
  void seal();

 private:
  int fd_ = -1;
  std::uint64_t size_ = 0;
  std::byte* data_ = nullptr;
};

}  // namespace batchfs
