// numcodecs' packbits: a byte that holds the number of padding bits, then eight booleans a byte,
// first in the highest bit.

#include "engine/codec/codecs.h"

namespace batchfs {

namespace {

class PackBitsCodec final : public Codec {
 public:
  std::string_view name() const override { return "packbits"; }
  std::optional<std::uint64_t> encoded_size(std::uint64_t decoded) const override {
    return 1 + (decoded + 7) / 8;
  }

  std::size_t decode(std::span<const std::byte> in, std::span<std::byte> out) const override {
    if (in.empty()) throw Error(ErrorCode::corrupt, "the packed bits are truncated");
    const auto padding = static_cast<std::size_t>(in[0]);
    const std::size_t bits = (in.size() - 1) * 8;
    if (padding > 7 || padding > bits || bits - padding > out.size())
      throw Error(ErrorCode::corrupt, "the packed bits do not fit the chunk");
    const std::size_t count = bits - padding;
    for (std::size_t i = 0; i < count; ++i) out[i] = (in[1 + i / 8] >> (7 - i % 8)) & std::byte{1};
    return count;
  }
};

}  // namespace

std::unique_ptr<Codec> make_packbits(const JsonRef& configuration, ChunkLayout& layout) {
  // The v3 codec of this name has options that numcodecs' has not.
  for (const auto& [key, value] : configuration.members())
    throw value.error("this option of packbits is not supported", ErrorCode::not_supported);
  if (layout.type.kind != Kind::boolean && layout.type.itemsize != 1)
    throw Error(ErrorCode::not_supported,
                "packbits on values that are not booleans is not supported");
  return std::make_unique<PackBitsCodec>();
}

}  // namespace batchfs
