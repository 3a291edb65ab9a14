#pragma once
// A PNG file, of indexed or of true colours. Source: PNG specification (third edition) sections 5,
// 10 and 11, RFC 1950, RFC 1951 section 3.2.4.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fs/formats/canvas.h"

namespace batchfs {

using Palette = std::array<std::array<std::uint8_t, 3>, 256>;

enum class PngColours : std::uint8_t {
  indexed,  // a byte a pixel: indexes of the palette only
  full,     // three bytes a pixel
};

/// Bytes of the file that write_png() writes. There are fewer than 2^30 pixels.
std::uint64_t png_size(std::uint32_t width, std::uint32_t height,
                       PngColours colours = PngColours::indexed);

/// Writes a file of known size: nothing in it is compressed. `pixels` are rows from the top. `out`
/// has png_size() bytes.
void write_png(std::span<std::byte> out, std::uint32_t width, std::uint32_t height,
               const Palette& palette, std::span<const Pixel> pixels,
               PngColours colours = PngColours::indexed);

/// A compressed file of the same pixels. Throws std::bad_alloc.
std::vector<std::byte> compressed_png(std::uint32_t width, std::uint32_t height,
                                      const Palette& palette, std::span<const Pixel> pixels,
                                      PngColours colours = PngColours::indexed);

}  // namespace batchfs
