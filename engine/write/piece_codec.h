#pragma once
// How the values between the two passes of a rechunk are stored: slab by slab.
//
// A slab is a checksum of its values (XXH3, 64 bits), then a Blosc frame of LZ4 after a byte
// shuffle. It is written once and read once, soon: Zstandard at level 1 takes six times as long
// for a sixth fewer bytes.

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/base/buffer.h"

namespace batchfs {

/// Decoded bytes of a slab, or one element where that is more. Fits into a processor's cache with
/// its encoded form.
inline constexpr std::int64_t kSlabBytes = 128 << 10;

/// Precondition: `values` has whole elements of `itemsize` bytes, and at least one.
Buffer encode_slab(std::span<const std::byte> values, std::uint32_t itemsize);

/// Stored bytes of a slab, at most.
std::uint64_t encoded_slab_bound(std::uint64_t decoded);

/// False if `stored` is not exactly the slab of `values`, with the checksum that it contains.
bool decode_slab(std::span<const std::byte> stored, std::span<std::byte> values);

}  // namespace batchfs
