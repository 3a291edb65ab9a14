#pragma once
// An owned, uninitialised run of bytes: stores return it and codecs decode into it.
//
// Large ones come from a small pool: fresh memory costs a page fault per 4 KB, more than fast
// decoders need for the same bytes, and chunks of one array all have about the same size.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace batchfs {

/// Move-only. Aligned to 64 bytes, so that vector code and numpy dtypes never care.
class Buffer {
 public:
  Buffer() = default;
  /// Throws std::bad_alloc.
  explicit Buffer(std::size_t size);
  ~Buffer();
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        allocated_(std::exchange(other.allocated_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(allocated_, other.allocated_);
    return *this;
  }

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::span<std::byte> span() { return {data_, size_}; }
  std::span<const std::byte> span() const { return {data_, size_}; }

  /// Forgets the bytes past `size`, which must not grow.
  void truncate(std::size_t size) { size_ = size; }
  /// Frees the memory instead of pooling it, for a size that will not recur, such as the text of
  /// a whole file. Empties the buffer.
  void discard();

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t allocated_ = 0;
};

}  // namespace batchfs
