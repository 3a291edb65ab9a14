#pragma once
// Staging memory: reserved in order, contiguously, and freed in the same order.

#include <algorithm>
#include <cstdint>
#include <optional>

#include "engine/base/rounding.h"

namespace batchfs::gpu {

/// Not thread-safe.
class StagingRing {
 public:
  explicit StagingRing(std::uint64_t size) : size_(size) {}

  struct Room {
    std::uint64_t offset;  // in the memory
    std::uint64_t end;     // for free_up_to()
  };
  /// nullopt: not so many contiguous bytes are free. Precondition: `size` is at most the ring's.
  std::optional<Room> reserve(std::uint64_t size) {
    if (head_ == tail_) head_ = tail_ = round_up<std::uint64_t>(head_, size_);  // all is free
    std::uint64_t begin = head_;
    if (begin % size_ + size > size_) begin = round_up<std::uint64_t>(begin, size_);
    if (begin + size - tail_ > size_) return std::nullopt;
    head_ = begin + size;
    return Room{begin % size_, head_};
  }
  /// Frees a room and all that were reserved before it.
  void free_up_to(std::uint64_t end) { tail_ = std::max(tail_, end); }

 private:
  const std::uint64_t size_;
  std::uint64_t head_ = 0, tail_ = 0;  // bytes reserved and freed, without wrapping
};

}  // namespace batchfs::gpu
