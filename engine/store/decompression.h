#pragma once
// Whole files that are compressed: metadata and reference sets, whose decoded size is unknown.

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/base/buffer.h"

namespace batchfs {

enum class FileCompression : std::uint8_t { none, gzip, zstd };

/// By the first bytes.
FileCompression compression_of(std::span<const std::byte> head);

/// One frame. Throws corrupt for damage and for bytes after it, no_memory when it takes more than
/// `largest` bytes.
Buffer decompress_zstd_frame(std::span<const std::byte> in, std::uint64_t largest);

/// Decompresses a file: all members or frames, one after the other. Throws as above. Precondition:
/// `in` is compressed.
Buffer decompress_file(std::span<const std::byte> in, std::uint64_t largest);

}  // namespace batchfs
