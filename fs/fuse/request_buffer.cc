#include "fs/fuse/request_buffer.h"

#include <algorithm>

namespace batchfs {

namespace {

/// Maximum size of requests to a read-only file system: FUSE_MIN_READ_BUFFER.
constexpr std::size_t kLargestRequest = 8192;
constexpr std::size_t kSmallestPage = 4096;

}  // namespace

void map_request_buffer(std::span<std::byte> buffer) {
  volatile std::byte* const bytes = buffer.data();
  const std::size_t size = std::min(buffer.size(), kLargestRequest);
  for (std::size_t i = 0; i < size; i += kSmallestPage) bytes[i] = std::byte{0};
  if (size > 0) bytes[size - 1] = std::byte{0};
}

}  // namespace batchfs
