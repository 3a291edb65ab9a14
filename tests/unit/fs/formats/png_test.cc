#include "fs/formats/png.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <zlib.h>

namespace batchfs {
namespace png_test {

struct Chunk {
  std::string name, data;
};

std::uint32_t number(const std::string& bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i)
    value = value << 8 | static_cast<unsigned char>(bytes.at(at + i));
  return value;
}

/// The chunks of a file, their checksums compared with zlib's.
std::vector<Chunk> chunks(const std::string& file) {
  EXPECT_EQ(file.substr(0, 8), "\x89PNG\r\n\x1a\n");
  std::vector<Chunk> all;
  for (std::size_t at = 8; at < file.size();) {
    const std::uint32_t size = number(file, at);
    all.push_back({file.substr(at + 4, 4), file.substr(at + 8, size)});
    const auto* checked = reinterpret_cast<const Bytef*>(file.data()) + at + 4;
    EXPECT_EQ(number(file, at + 8 + size), crc32(0, checked, size + 4));
    at += 12 + size;
  }
  return all;
}

Palette greys() {
  Palette palette;
  for (std::size_t i = 0; i < 256; ++i) palette[i].fill(static_cast<std::uint8_t>(i));
  return palette;
}

// Rows and blocks end together, one after the other, or far apart: a block holds 65535 bytes.
TEST(Png, IsWhatWasDrawn) {
  for (const auto& [width, height] :
       {std::pair{1u, 1u}, {65534u, 1u}, {65535u, 1u}, {254u, 257u}, {300u, 700u}, {1u, 40000u}}) {
    SCOPED_TRACE(std::to_string(width) + " x " + std::to_string(height));
    std::vector<Pixel> pixels(std::size_t{width} * height);
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = (i * 7 + i / 251) % 256;
    std::string file(png_size(width, height), 'x');
    write_png(std::as_writable_bytes(std::span(file)), width, height, greys(), pixels);
    const std::vector<Chunk> parts = chunks(file);
    ASSERT_EQ(parts.size(), 4u);
    EXPECT_EQ(parts[0].name, "IHDR");
    EXPECT_EQ(number(parts[0].data, 0), width);
    EXPECT_EQ(number(parts[0].data, 4), height);
    EXPECT_EQ(parts[0].data.substr(8), std::string("\x08\x03\x00\x00\x00", 5));
    EXPECT_EQ(parts[1].name, "PLTE");
    ASSERT_EQ(parts[1].data.size(), 768u);
    EXPECT_EQ(parts[1].data.substr(600, 3), std::string(3, static_cast<char>(200)));
    EXPECT_EQ(parts[2].name, "IDAT");
    EXPECT_EQ(parts[3].name, "IEND");
    std::vector<Bytef> image((std::size_t{width} + 1) * height + 1);
    uLongf size = image.size();
    ASSERT_EQ(uncompress(image.data(), &size, reinterpret_cast<const Bytef*>(parts[2].data.data()),
                         parts[2].data.size()),
              Z_OK);
    ASSERT_EQ(size, image.size() - 1);
    for (std::size_t y = 0; y < height; ++y) {
      ASSERT_EQ(image[y * (width + 1)], 0);
      ASSERT_TRUE(std::equal(pixels.begin() + static_cast<std::ptrdiff_t>(y * width),
                             pixels.begin() + static_cast<std::ptrdiff_t>((y + 1) * width),
                             image.begin() + static_cast<std::ptrdiff_t>(y * (width + 1) + 1)));
    }
  }
}

TEST(Png, HasColoursOfItsOwn) {
  const std::vector<Pixel> pixels = {true_colour(1, 2, 3), 200, true_colour(255, 254, 0), 0, 7,
                                     true_colour(0, 0, 0)};
  std::string file(png_size(3, 2, PngColours::full), 'x');
  write_png(std::as_writable_bytes(std::span(file)), 3, 2, greys(), pixels, PngColours::full);
  const std::vector<Chunk> parts = chunks(file);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].data.substr(8), std::string("\x08\x02\x00\x00\x00", 5));
  EXPECT_EQ(parts[1].name, "IDAT");
  std::vector<Bytef> image(100);
  uLongf size = image.size();
  ASSERT_EQ(uncompress(image.data(), &size, reinterpret_cast<const Bytef*>(parts[1].data.data()),
                       parts[1].data.size()),
            Z_OK);
  image.resize(size);
  EXPECT_EQ(image, (std::vector<Bytef>{0, 1, 2, 3, 200, 200, 200, 255, 254, 0,
                                       0, 0, 0, 0, 7,   7,   7,   0,   0,   0}));
}

TEST(Png, CompressedHasTheSamePixels) {
  for (const PngColours colours : {PngColours::indexed, PngColours::full}) {
    std::vector<Pixel> pixels;
    for (unsigned i = 0; i < 300 * 200; ++i)
      pixels.push_back(colours == PngColours::full && i % 3 == 0 ? true_colour(i % 256, 1, 2)
                                                                 : i / 97 % 256);
    std::string plain(png_size(300, 200, colours), 'x');
    write_png(std::as_writable_bytes(std::span(plain)), 300, 200, greys(), pixels, colours);
    const std::vector<std::byte> bytes = compressed_png(300, 200, greys(), pixels, colours);
    const std::string small(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    EXPECT_LT(small.size(), plain.size() / 4);
    const std::vector<Chunk> expected = chunks(plain), parts = chunks(small);
    ASSERT_EQ(parts.size(), expected.size());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      EXPECT_EQ(parts[i].name, expected[i].name);
      if (parts[i].name != "IDAT") {
        EXPECT_EQ(parts[i].data, expected[i].data);
        continue;
      }
      std::vector<std::string> images;
      for (const std::string& data : {parts[i].data, expected[i].data}) {
        std::string image(1 << 20, '\0');
        uLongf size = image.size();
        ASSERT_EQ(uncompress(reinterpret_cast<Bytef*>(image.data()), &size,
                             reinterpret_cast<const Bytef*>(data.data()), data.size()),
                  Z_OK);
        image.resize(size);
        images.push_back(std::move(image));
      }
      EXPECT_EQ(images[0], images[1]);
    }
  }
}

}  // namespace png_test
}  // namespace batchfs
