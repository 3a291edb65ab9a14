// gzip (RFC 1952, several members) and zlib (RFC 1950), decoded by libdeflate.

#include <libdeflate.h>

#include "engine/codec/codecs.h"
#include "engine/store/deflate_decoder.h"

namespace batchfs {

namespace {

[[noreturn]] void fail(libdeflate_result result, std::string_view name) {
  if (result == LIBDEFLATE_INSUFFICIENT_SPACE)
    throw Error(ErrorCode::corrupt,
                "the " + std::string(name) + " data decode to more than was expected");
  throw Error(ErrorCode::corrupt, "the " + std::string(name) + " data are damaged or truncated");
}

class GzipCodec final : public Codec {
 public:
  std::string_view name() const override { return "gzip"; }
  std::optional<std::uint64_t> encoded_size(std::uint64_t) const override { return std::nullopt; }

  std::size_t decode(std::span<const std::byte> in, std::span<std::byte> out) const override {
    std::size_t done = 0;
    do {
      std::size_t used = 0, got = 0;
      const libdeflate_result result =
          libdeflate_gzip_decompress_ex(deflate_decoder(), in.data(), in.size(), out.data() + done,
                                        out.size() - done, &used, &got);
      if (result != LIBDEFLATE_SUCCESS) fail(result, name());
      done += got;
      in = in.subspan(used);
    } while (!in.empty());
    return done;
  }
};

class ZlibCodec final : public Codec {
 public:
  std::string_view name() const override { return "zlib"; }
  std::optional<std::uint64_t> encoded_size(std::uint64_t) const override { return std::nullopt; }

  std::size_t decode(std::span<const std::byte> in, std::span<std::byte> out) const override {
    std::size_t got = 0;
    const libdeflate_result result = libdeflate_zlib_decompress(
        deflate_decoder(), in.data(), in.size(), out.data(), out.size(), &got);
    if (result != LIBDEFLATE_SUCCESS) fail(result, name());
    return got;
  }
};

}  // namespace

std::unique_ptr<Codec> make_gzip(const JsonRef&, ChunkLayout&) {
  return std::make_unique<GzipCodec>();
}
std::unique_ptr<Codec> make_zlib(const JsonRef&, ChunkLayout&) {
  return std::make_unique<ZlibCodec>();
}

}  // namespace batchfs
