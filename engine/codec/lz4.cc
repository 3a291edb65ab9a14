// numcodecs' LZ4: the decoded size as a little-endian u32, then one LZ4 block.

#include <cstring>

#include <fmt/format.h>
#include <lz4.h>

#include "engine/codec/codecs.h"

namespace batchfs {

namespace {

class Lz4Codec final : public Codec {
 public:
  std::string_view name() const override { return "lz4"; }
  std::optional<std::uint64_t> encoded_size(std::uint64_t) const override { return std::nullopt; }

  std::size_t decode(std::span<const std::byte> in, std::span<std::byte> out) const override {
    std::uint32_t size = 0;
    if (in.size() < sizeof size || in.size() > LZ4_MAX_INPUT_SIZE)
      throw Error(ErrorCode::corrupt, "the LZ4 data are truncated");
    std::memcpy(&size, in.data(), sizeof size);
    if (size > out.size())
      throw Error(ErrorCode::corrupt,
                  fmt::format("the LZ4 data hold {} bytes, {} were expected", size, out.size()));
    const int got = LZ4_decompress_safe(
        reinterpret_cast<const char*>(in.data()) + sizeof size, reinterpret_cast<char*>(out.data()),
        static_cast<int>(in.size() - sizeof size), static_cast<int>(size));
    if (got < 0 || static_cast<std::uint32_t>(got) != size)
      throw Error(ErrorCode::corrupt, "the LZ4 data do not decode");
    return size;
  }
};

}  // namespace

std::unique_ptr<Codec> make_lz4(const JsonRef&, ChunkLayout&) {
  return std::make_unique<Lz4Codec>();
}

}  // namespace batchfs
