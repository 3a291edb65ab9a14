#include "fs/formats/png.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include <libdeflate.h>

namespace batchfs {

namespace {

constexpr std::uint64_t kMaxStoredBlock = 65535;      // the most that a stored block holds
constexpr std::uint64_t kSignature = 8, kFrame = 12;  // a chunk's length, name and checksum
constexpr std::uint64_t kHeader = 13, kPalette = 3 * 256;

/// Every row begins with the number of its filter.
std::uint64_t image_bytes(std::uint32_t width, std::uint32_t height, PngColours colours) {
  return (std::uint64_t{width} * (colours == PngColours::full ? 3 : 1) + 1) * height;
}

/// Size of the palette chunk; true-colour pictures have none.
std::uint64_t palette_bytes(PngColours colours) {
  return colours == PngColours::full ? 0 : kFrame + kPalette;
}

std::uint64_t stream_bytes(std::uint64_t image) {
  return 2 + 5 * ((image + kMaxStoredBlock - 1) / kMaxStoredBlock) + image + 4;
}

class Writer {
 public:
  explicit Writer(std::span<std::byte> out) : out_(out) {}
  void bytes(const void* data, std::size_t size) {
    std::memcpy(out_.subspan(at_, size).data(), data, size);
    at_ += size;
  }
  void byte(unsigned value) { out_[at_++] = static_cast<std::byte>(value); }
  void big_endian(std::uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) byte(value >> shift & 0xff);
  }
  void begin_chunk(const char* name, std::uint64_t size) {
    big_endian(static_cast<std::uint32_t>(size));
    chunk_ = at_;
    bytes(name, 4);
  }
  void end_chunk() { big_endian(libdeflate_crc32(0, out_.data() + chunk_, at_ - chunk_)); }

 private:
  std::span<std::byte> out_;
  std::size_t at_ = 0, chunk_ = 0;
};

/// Bytes of the image as stored blocks.
class StoredBlocks {
 public:
  StoredBlocks(Writer& writer, std::uint64_t image) : writer_(writer), left_(image) {}
  void append(const std::uint8_t* data, std::uint64_t size) {
    adler_ = libdeflate_adler32(adler_, data, size);
    while (size > 0) {
      if (in_block_ == 0) begin_block();
      const std::uint64_t now = std::min(size, in_block_);
      writer_.bytes(data, now);
      data += now;
      size -= now;
      in_block_ -= now;
      left_ -= now;
    }
  }
  std::uint32_t checksum() const { return adler_; }

 private:
  void begin_block() {
    in_block_ = std::min(left_, kMaxStoredBlock);
    const auto size = static_cast<unsigned>(in_block_);
    writer_.byte(left_ == in_block_ ? 1 : 0);  // the last one
    for (const unsigned field : {size, ~size})
      for (const unsigned shift : {0u, 8u}) writer_.byte(field >> shift & 0xff);
  }
  Writer& writer_;
  std::uint64_t left_, in_block_ = 0;
  std::uint32_t adler_ = 1;
};

/// Writes all chunks before the image data.
void write_head(Writer& writer, std::uint32_t width, std::uint32_t height, const Palette& palette,
                PngColours colours) {
  const bool full = colours == PngColours::full;
  writer.bytes("\x89PNG\r\n\x1a\n", kSignature);
  writer.begin_chunk("IHDR", kHeader);
  writer.big_endian(width);
  writer.big_endian(height);
  for (const unsigned value : {8u, full ? 2u : 3u, 0u, 0u, 0u})
    writer.byte(value);  // 8 bits, not interlaced
  writer.end_chunk();
  if (full) return;
  writer.begin_chunk("PLTE", kPalette);
  for (const auto& colour : palette) writer.bytes(colour.data(), colour.size());
  writer.end_chunk();
}

/// Calls `use` with each row of the image: the filter byte (no filter) and the pixels.
template <class Use>
void for_each_row(std::uint32_t width, std::uint32_t height, const Palette& palette,
                  std::span<const Pixel> pixels, PngColours colours, Use use) {
  std::vector<std::uint8_t> line;
  for (std::uint32_t y = 0; y < height; ++y) {
    line.assign(1, 0);
    for (const Pixel pixel : pixels.subspan(std::size_t{y} * width, width)) {
      if (colours != PngColours::full)
        line.push_back(static_cast<std::uint8_t>(pixel));
      else if (pixel < palette.size())
        line.insert(line.end(), palette[pixel].begin(), palette[pixel].end());
      else
        for (const int shift : {16, 8, 0})
          line.push_back(static_cast<std::uint8_t>(pixel >> shift));
    }
    use(line);
  }
}

void write_end(Writer& writer) {
  writer.end_chunk();
  writer.begin_chunk("IEND", 0);
  writer.end_chunk();
}

}  // namespace

std::uint64_t png_size(std::uint32_t width, std::uint32_t height, PngColours colours) {
  return kSignature + (kFrame + kHeader) + palette_bytes(colours) +
         (kFrame + stream_bytes(image_bytes(width, height, colours))) + kFrame;
}

void write_png(std::span<std::byte> out, std::uint32_t width, std::uint32_t height,
               const Palette& palette, std::span<const Pixel> pixels, PngColours colours) {
  Writer writer(out);
  write_head(writer, width, height, palette, colours);
  const std::uint64_t image = image_bytes(width, height, colours);
  writer.begin_chunk("IDAT", stream_bytes(image));
  writer.byte(0x78);  // deflate, a window of 32 KiB
  writer.byte(0x01);  // makes the two a multiple of 31
  StoredBlocks blocks(writer, image);
  for_each_row(width, height, palette, pixels, colours, [&](const std::vector<std::uint8_t>& line) {
    blocks.append(line.data(), line.size());
  });
  writer.big_endian(blocks.checksum());
  write_end(writer);
}

std::vector<std::byte> compressed_png(std::uint32_t width, std::uint32_t height,
                                      const Palette& palette, std::span<const Pixel> pixels,
                                      PngColours colours) {
  std::vector<std::uint8_t> image;
  image.reserve(image_bytes(width, height, colours));
  for_each_row(width, height, palette, pixels, colours, [&](const std::vector<std::uint8_t>& line) {
    image.insert(image.end(), line.begin(), line.end());
  });
  constexpr int kLevel = 9;
  const std::unique_ptr<libdeflate_compressor, void (*)(libdeflate_compressor*)> compressor(
      libdeflate_alloc_compressor(kLevel), libdeflate_free_compressor);
  if (compressor == nullptr) throw std::bad_alloc();
  std::vector<std::byte> stream(libdeflate_zlib_compress_bound(compressor.get(), image.size()));
  stream.resize(libdeflate_zlib_compress(compressor.get(), image.data(), image.size(),
                                         stream.data(), stream.size()));
  std::vector<std::byte> out(kSignature + (kFrame + kHeader) + palette_bytes(colours) +
                             (kFrame + stream.size()) + kFrame);
  Writer writer(out);
  write_head(writer, width, height, palette, colours);
  writer.begin_chunk("IDAT", stream.size());
  writer.bytes(stream.data(), stream.size());
  write_end(writer);
  return out;
}

}  // namespace batchfs
