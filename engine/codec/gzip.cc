// gzip (RFC 1952, several members) and zlib (RFC 1950), decoded by libdeflate.

#include <libdeflate.h>

#include "engine/base/per_thread.h"
#include "engine/codec/codecs.h"

namespace batchfs {

namespace {

struct Decompressor {
  libdeflate_decompressor* const of_library = libdeflate_alloc_decompressor();
  Decompressor() {
    if (of_library == nullptr)
      throw Error(ErrorCode::no_memory, "no memory for the deflate decoder");
  }
  ~Decompressor() { libdeflate_free_decompressor(of_library); }
};

libdeflate_decompressor* decompressor() {
  static PerThread<Decompressor> decompressors;
  return decompressors.get().of_library;
}

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
      const libdeflate_result result = libdeflate_gzip_decompress_ex(
          decompressor(), in.data(), in.size(), out.data() + done, out.size() - done, &used, &got);
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
        decompressor(), in.data(), in.size(), out.data(), out.size(), &got);
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
