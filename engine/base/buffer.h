#pragma once
// An owned, uninitialised run of bytes: what stores return and codecs decode into.

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>

namespace batchfs {

/// Move-only. Aligned to 64 bytes, so that vector code and numpy dtypes never care.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t size) : size_(size) {
    if (size == 0) return;
    void* memory = std::aligned_alloc(kAlignment, (size + kAlignment - 1) / kAlignment * kAlignment);
    if (memory == nullptr) throw std::bad_alloc();
    data_.reset(static_cast<std::byte*>(memory));
  }

  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  std::span<std::byte> span() { return {data_.get(), size_}; }
  std::span<const std::byte> span() const { return {data_.get(), size_}; }

  /// Forgets the bytes past `size`, which must not grow.
  void truncate(std::size_t size) { size_ = size; }

 private:
  static constexpr std::size_t kAlignment = 64;
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t size_ = 0;
};

}  // namespace batchfs
