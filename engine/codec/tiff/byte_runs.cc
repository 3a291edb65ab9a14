// `imagecodecs_packbits`: runs of bytes, as TIFF's PackBits and Macintosh's. Source: TIFF 6.0,
// section 9. (numcodecs' `packbits` is another codec.)

#include <cstring>

#include "engine/codec/codecs.h"

namespace batchfs {

namespace {

class ByteRunsCodec final : public Codec {
 public:
  std::string_view name() const override { return "imagecodecs_packbits"; }
  std::optional<std::uint64_t> encoded_size(std::uint64_t) const override { return std::nullopt; }
  /// Careless writers make two bytes of one, each in a run of its own.
  std::uint64_t encoded_bound(std::uint64_t decoded) const override { return 2 * decoded + 4096; }

  std::size_t decode(std::span<const std::byte> in, std::span<std::byte> out) const override {
    constexpr int kNothing = -128;
    std::size_t at = 0, done = 0;
    while (at < in.size()) {
      const int head = static_cast<std::int8_t>(in[at++]);
      if (head == kNothing) continue;
      const auto length = static_cast<std::size_t>(head < 0 ? 1 - head : head + 1);
      const std::size_t stored = head < 0 ? 1 : length;
      if (stored > in.size() - at)
        throw Error(ErrorCode::corrupt, "the runs of bytes are truncated");
      if (length > out.size() - done)
        throw Error(ErrorCode::corrupt, "the runs of bytes decode to more than was expected");
      if (head < 0)
        std::memset(out.data() + done, static_cast<int>(in[at]), length);
      else
        std::memcpy(out.data() + done, in.data() + at, length);
      at += stored;
      done += length;
    }
    return done;
  }
};

}  // namespace

std::unique_ptr<Codec> make_byte_runs(const JsonRef&, ChunkLayout&) {
  return std::make_unique<ByteRunsCodec>();
}

}  // namespace batchfs
