// Zstandard frames: with or without content size, several in a row, skippable ones between. Source:
// RFC 8878.

#include <memory>

#include <fmt/format.h>
#include <zstd.h>

#include "engine/base/per_thread.h"
#include "engine/codec/codecs.h"

namespace batchfs {

namespace {

struct Context {
  ZSTD_DCtx* const of_library = ZSTD_createDCtx();
  Context() {
    if (of_library == nullptr) throw Error(ErrorCode::no_memory, "no memory for the zstd decoder");
  }
  ~Context() { ZSTD_freeDCtx(of_library); }
};

class ZstdCodec final : public Codec {
 public:
  std::string_view name() const override { return "zstd"; }
  std::optional<std::uint64_t> encoded_size(std::uint64_t) const override { return std::nullopt; }

  std::size_t decode(std::span<const std::byte> in, std::span<std::byte> out) const override {
    static PerThread<Context> contexts;
    // Goes over all frames, and needs no content size: the output's size bounds it.
    const std::size_t got = ZSTD_decompressDCtx(contexts.get().of_library, out.data(), out.size(),
                                                in.data(), in.size());
    if (ZSTD_isError(got))
      throw Error(ErrorCode::corrupt,
                  fmt::format("the zstd frame does not decode: {}", ZSTD_getErrorName(got)));
    return got;
  }
};

}  // namespace

std::unique_ptr<Codec> make_zstd(const JsonRef&, ChunkLayout&) {
  return std::make_unique<ZstdCodec>();
}

}  // namespace batchfs
