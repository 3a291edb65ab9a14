#pragma once
// A PNG file, of indexed or of true colours, whose size is known before its pixels are: nothing in
// it is compressed. Source: PNG specification (third edition) sections 5, 10 and 11, RFC 1950, RFC
// 1951 section 3.2.4.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "fs/formats/canvas.h"

namespace batchfs {

using Palette = std::array<std::array<std::uint8_t, 3>, 256>;

enum class PngColours : std::uint8_t {
  indexed,  // a byte a pixel: indexes of the palette only
  full,     // three bytes a pixel
};

/// Bytes of the file. There are fewer than 2^30 pixels.
std::uint64_t png_size(std::uint32_t width, std::uint32_t height,
                       PngColours colours = PngColours::indexed);

/// Writes the file: `pixels` are rows from the top. `out` is of png_size().
void write_png(std::span<std::byte> out, std::uint32_t width, std::uint32_t height,
               const Palette& palette, std::span<const Pixel> pixels,
               PngColours colours = PngColours::indexed);

}  // namespace batchfs
