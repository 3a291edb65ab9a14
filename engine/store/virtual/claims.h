#pragma once
// Counts the memory of a decoded file before it is allocated.

#include <cstdint>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/strings.h"

namespace batchfs {

/// Not thread-safe.
class Claims {
 public:
  explicit Claims(std::uint64_t limit) : limit_(limit) {}

  /// Throws no_memory.
  void take(std::uint64_t bytes) {
    if (bytes > limit_ - used_)
      throw Error(ErrorCode::no_memory,
                  fmt::format("what it describes takes more than {} of memory; give more with "
                              "--memory",
                              format_size(limit_)));
    used_ += bytes;
  }
  std::uint64_t used() const { return used_; }

 private:
  const std::uint64_t limit_;
  std::uint64_t used_ = 0;
};

}  // namespace batchfs
