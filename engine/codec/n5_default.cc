// `n5_default`: a block of N5, which begins with its own shape. Source: zarr-extensions, codec
// "n5_default"; N5 4.0.0, "File-system specification".

#include <cstring>

#include <fmt/format.h>

#include "engine/base/buffer.h"
#include "engine/codec/chain.h"
#include "engine/codec/codecs.h"
#include "engine/codec/sharding.h"
#include "engine/codec/typed.h"

namespace batchfs {

namespace {

class N5BlockCodec final : public Codec {
 public:
  N5BlockCodec(std::vector<CodecSpec> specs, const ChunkLayout& layout)
      : specs_(std::move(specs)), layout_(layout), whole_(specs_, layout_) {}
  std::string_view name() const override { return "n5_default"; }
  std::optional<std::uint64_t> encoded_size(std::uint64_t) const override { return std::nullopt; }
  std::uint64_t encoded_bound(std::uint64_t) const override {
    return header_bytes() + whole_.encoded_bound();
  }
  /// For a block at the array's edge, which may be smaller than a chunk: the block itself and its
  /// codecs' scratch.
  std::uint64_t scratch_bytes(std::uint64_t decoded) const override {
    return decoded + whole_.scratch_bytes();
  }

  std::size_t decode(std::span<const std::byte> in, std::span<std::byte> out) const override {
    if (in.size() < header_bytes()) throw damaged("it is too short for its header");
    if (const auto mode = read_number<std::uint16_t>(in.data(), true); mode != 0)
      throw Error(ErrorCode::not_supported,
                  fmt::format("N5 blocks of the mode {} are not supported", mode));
    if (read_number<std::uint16_t>(in.data() + 2, true) != layout_.shape.size())
      throw damaged("it has another number of dimensions than the array");
    ChunkLayout block = layout_;
    for (std::size_t d = 0; d < block.shape.size(); ++d) {
      const auto length = read_number<std::uint32_t>(in.data() + 4 + 4 * d, true);
      if (length == 0 || std::int64_t{length} > layout_.shape[d])
        throw damaged(fmt::format("it has the length {} along dimension {}, chunks have {}", length,
                                  d, layout_.shape[d]));
      block.shape[d] = length;
    }
    const std::uint64_t bytes = whole_.decoded_size();
    if (out.size() < bytes) throw damaged("it is larger than expected");
    const std::span<const std::byte> values = in.subspan(header_bytes());
    if (block.shape == layout_.shape) {
      whole_.decode(values, out.first(bytes));
      return bytes;
    }
    const CodecChain chain(specs_, block);
    Buffer part(chain.decoded_size());
    chain.decode(values, part.span());
    const std::size_t item = layout_.type.itemsize;
    const Dims strides = c_strides(layout_.shape, static_cast<std::int64_t>(item));
    copy_strided(layout_.shape, item, layout_.fill_value.data(), Dims(layout_.shape.size()),
                 out.data(), strides);
    copy_strided(block.shape, item, part.data(),
                 c_strides(block.shape, static_cast<std::int64_t>(item)), out.data(), strides);
    return bytes;
  }

 private:
  std::size_t header_bytes() const { return 4 + 4 * layout_.shape.size(); }
  static Error damaged(const std::string& why) {
    return Error(ErrorCode::corrupt, "the N5 block is damaged: " + why);
  }

  const std::vector<CodecSpec> specs_;
  const ChunkLayout layout_;
  const CodecChain whole_;
};

}  // namespace

std::unique_ptr<Codec> make_n5_default(const JsonRef& configuration, ChunkLayout& layout) {
  // A block's codecs are made again for each block at the edge.
  constexpr std::size_t kMaxInner = 4;
  const JsonRef codecs = configuration.at("codecs");
  std::vector<CodecSpec> specs = parse_codec_list(codecs);
  if (specs.size() > kMaxInner)
    throw codecs.error("more than a transpose, bytes and a compressor are not supported",
                       ErrorCode::not_supported);
  for (const CodecSpec& spec : specs)
    if (spec.name == "sharding_indexed" || spec.name == "n5_default")
      throw codecs.error("'" + spec.name + "' inside of an N5 block is not supported",
                         ErrorCode::not_supported);
  if (layout.fill_value.size() != layout.type.itemsize)
    throw Error(ErrorCode::not_supported, "N5 blocks without a fill value are not supported");
  auto codec = std::make_unique<N5BlockCodec>(std::move(specs), layout);
  layout.serialized = true;
  return codec;
}

}  // namespace batchfs
