#pragma once
// The memory that a store's metadata takes, counted while it is read.

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/strings.h"

namespace batchfs {

/// Not thread-safe.
class MetadataMemory {
 public:
  explicit MetadataMemory(std::uint64_t limit) : limit_(limit) {}

  /// Throws no_memory.
  void claim(std::uint64_t bytes) {
    used_ += bytes;
    if (used_ > limit_) throw exceeded();
  }
  void release(std::uint64_t bytes) { used_ -= std::min(used_, bytes); }
  std::uint64_t used() const { return used_; }
  std::uint64_t left() const { return limit_ - std::min(limit_, used_); }

  Error exceeded() const {
    return Error(ErrorCode::no_memory,
                 fmt::format("reading the store's metadata takes more than {} of memory; "
                             "give more with --memory",
                             format_size(limit_)));
  }

 private:
  const std::uint64_t limit_;
  std::uint64_t used_ = 0;
};

/// A claim that ends with this object.
class Passing {
 public:
  Passing(MetadataMemory& memory, std::uint64_t bytes) : memory_(memory), bytes_(bytes) {
    memory_.claim(bytes_);
  }
  ~Passing() { memory_.release(bytes_); }
  Passing(const Passing&) = delete;
  Passing& operator=(const Passing&) = delete;
  /// `bytes` of it are now accounted for elsewhere.
  void shrink(std::uint64_t bytes) {
    bytes = std::min(bytes, bytes_);
    memory_.release(bytes);
    bytes_ -= bytes;
  }

 private:
  MetadataMemory& memory_;
  std::uint64_t bytes_;
};

}  // namespace batchfs
