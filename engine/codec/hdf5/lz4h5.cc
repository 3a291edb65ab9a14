// LZ4 as HDF5's filter 32004 writes it, big-endian: the decoded size (u64), the decoded size of a
// block (u32), and the blocks, each after its size (u32). A block whose size equals its decoded
// size is stored uncompressed. VirtualiZarr names it after imagecodecs.
//
// Source: HDF5-External-Filter-Plugins, LZ4/src/H5Zlz4.c.

#include <algorithm>
#include <cstring>

#include <lz4.h>

#include "engine/codec/codecs.h"

namespace batchfs {

namespace {

Error damaged_blocks() { return Error(ErrorCode::corrupt, "the LZ4 data of HDF5 do not decode"); }

std::uint64_t take_number(std::span<const std::byte>& in, std::size_t bytes) {
  if (in.size() < bytes) throw damaged_blocks();
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < bytes; ++i)
    number = number << 8 | std::to_integer<std::uint64_t>(in[i]);
  in = in.subspan(bytes);
  return number;
}

class Lz4h5Codec final : public Codec {
 public:
  std::string_view name() const override { return "imagecodecs_lz4h5"; }
  std::optional<std::uint64_t> encoded_size(std::uint64_t) const override { return std::nullopt; }

  std::size_t decode(std::span<const std::byte> in, std::span<std::byte> out) const override {
    const std::uint64_t size = take_number(in, 8);
    const std::uint64_t block = take_number(in, 4);
    if (size > out.size() || block > LZ4_MAX_INPUT_SIZE || (block == 0 && size > 0))
      throw damaged_blocks();
    for (std::uint64_t done = 0; done < size;) {
      const std::uint64_t wanted = std::min(block, size - done);
      const std::uint64_t stored = take_number(in, 4);
      if (stored > in.size() || stored > LZ4_MAX_INPUT_SIZE) throw damaged_blocks();
      if (stored == wanted)
        std::memcpy(out.data() + done, in.data(), wanted);
      else if (LZ4_decompress_safe(reinterpret_cast<const char*>(in.data()),
                                   reinterpret_cast<char*>(out.data()) + done,
                                   static_cast<int>(stored),
                                   static_cast<int>(wanted)) != static_cast<int>(wanted))
        throw damaged_blocks();
      in = in.subspan(stored);
      done += wanted;
    }
    return size;
  }
};

}  // namespace

std::unique_ptr<Codec> make_lz4h5(const JsonRef&, ChunkLayout&) {
  return std::make_unique<Lz4h5Codec>();
}

}  // namespace batchfs
