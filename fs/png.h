#pragma once
// A PNG file of indexed colours whose size is known before its pixels are: nothing in it is compressed.
// Source: PNG specification (third edition) sections 5, 10 and 11, RFC 1950, RFC 1951 section 3.2.4.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace batchfs {

using Palette = std::array<std::array<std::uint8_t, 3>, 256>;

/// Bytes of the file. There are fewer than 2^30 pixels.
std::uint64_t png_size(std::uint32_t width, std::uint32_t height);

/// Writes the file: `pixels` are rows from the top, an index a byte. `out` is of png_size().
void write_png(std::span<std::byte> out, std::uint32_t width, std::uint32_t height, const Palette& palette,
               std::span<const std::uint8_t> pixels);

}  // namespace batchfs
