#pragma once
// The checksum of the codec `crc32c`, for writers.

#include <cstddef>
#include <cstdint>
#include <span>

namespace batchfs {

/// CRC-32C (Castagnoli), RFC 3720 appendix B.4.
std::uint32_t crc32c(std::span<const std::byte> bytes);

}  // namespace batchfs
