// LZF, as HDF5 holds it by h5py's filter: one block without a header. VirtualiZarr names it after
// imagecodecs.
//
// Source: liblzf's lzf_d.c. A control byte n below 32 begins a run of n + 1 literals;
// another one a match: its upper 3 bits the length less 2 (7: the next byte adds to it), its lower
// 5 bits and the last byte the distance less 1.

#include <cstring>

#include "engine/codec/codecs.h"

namespace batchfs {

namespace {

Error damaged_lzf() { return Error(ErrorCode::corrupt, "the LZF data do not decode"); }

class LzfCodec final : public Codec {
 public:
  std::string_view name() const override { return "imagecodecs_lzf"; }
  std::optional<std::uint64_t> encoded_size(std::uint64_t) const override { return std::nullopt; }

  std::size_t decode(std::span<const std::byte> in, std::span<std::byte> out) const override {
    if (in.size() > 2 && in[0] == std::byte{'Z'} && in[1] == std::byte{'V'})  // liblzf's own header
      throw Error(ErrorCode::not_supported, "LZF data with the header of the lzf command");
    std::size_t at = 0, done = 0;
    const auto next = [&] {
      if (at == in.size()) throw damaged_lzf();
      return std::to_integer<std::size_t>(in[at++]);
    };
    while (at < in.size()) {
      const std::size_t control = next();
      if (control < 32) {
        const std::size_t count = control + 1;
        if (count > in.size() - at || count > out.size() - done) throw damaged_lzf();
        std::memcpy(out.data() + done, in.data() + at, count);
        at += count;
        done += count;
        continue;
      }
      std::size_t length = control >> 5;
      if (length == 7) length += next();
      length += 2;
      const std::size_t distance = ((control & 31) << 8 | next()) + 1;
      if (distance > done || length > out.size() - done) throw damaged_lzf();
      // Byte by byte: a match may reach into itself.
      for (; length > 0; --length, ++done) out[done] = out[done - distance];
    }
    return done;
  }
};

}  // namespace

std::unique_ptr<Codec> make_lzf(const JsonRef&, ChunkLayout&) {
  return std::make_unique<LzfCodec>();
}

}  // namespace batchfs
