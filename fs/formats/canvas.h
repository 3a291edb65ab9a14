#pragma once
// An image to draw and write on. A pixel is a palette index or a true colour.

#include <cstdint>
#include <string_view>
#include <vector>

namespace batchfs {

/// Below 256: an index of the palette; else from true_colour().
using Pixel = std::uint32_t;
constexpr Pixel true_colour(unsigned red, unsigned green, unsigned blue) {
  return 1u << 24 | red << 16 | green << 8 | blue;
}

class Canvas {
 public:
  /// Letters are five pixels wide, seven high (nine with descenders), and stand six apart.
  static constexpr std::int64_t kLetterWidth = 6, kLineHeight = 11;

  /// All pixels are 0.
  Canvas(std::int64_t width, std::int64_t height);

  std::int64_t width() const { return width_; }
  std::int64_t height() const { return height_; }
  const std::vector<Pixel>& pixels() const { return pixels_; }
  Pixel at(std::int64_t x, std::int64_t y) const {
    return pixels_[static_cast<std::size_t>(y * width_ + x)];
  }

  /// Clips to the canvas.
  void set(std::int64_t x, std::int64_t y, Pixel colour);
  void fill(std::int64_t x, std::int64_t y, std::int64_t width, std::int64_t height, Pixel colour);
  /// Writes from the upper left corner. Each character outside ASCII becomes a question mark.
  void write(std::int64_t x, std::int64_t y, std::string_view text, Pixel colour);

 private:
  std::int64_t width_, height_;
  std::vector<Pixel> pixels_;
};

}  // namespace batchfs
