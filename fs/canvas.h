#pragma once
// A picture of indexed colours that one can write on.

#include <cstdint>
#include <string_view>
#include <vector>

namespace batchfs {

class Canvas {
 public:
  /// Letters are five pixels wide, seven high (nine with what hangs below), and stand six apart.
  static constexpr std::int64_t kLetterWidth = 6, kLineHeight = 11;

  /// All pixels are 0.
  Canvas(std::int64_t width, std::int64_t height);

  std::int64_t width() const { return width_; }
  std::int64_t height() const { return height_; }
  const std::vector<std::uint8_t>& pixels() const { return pixels_; }
  std::uint8_t at(std::int64_t x, std::int64_t y) const { return pixels_[static_cast<std::size_t>(y * width_ + x)]; }

  /// What lies outside is left out.
  void set(std::int64_t x, std::int64_t y, std::uint8_t colour);
  void fill(std::int64_t x, std::int64_t y, std::int64_t width, std::int64_t height, std::uint8_t colour);
  /// From its upper left corner. What is not ASCII is a question mark, one per character.
  void write(std::int64_t x, std::int64_t y, std::string_view text, std::uint8_t colour);

 private:
  std::int64_t width_, height_;
  std::vector<std::uint8_t> pixels_;
};

}  // namespace batchfs
