// LERC, limited error raster compression, as TIFF files hold it: `imagecodecs_lerc`, decoded by
// Esri's library; alone or inside Zstandard or zlib's format, which are recognized.
//
// A pixel that the image's mask leaves out is NaN in floats, as in GDAL, and 0 in integers. (The
// library's own values there are 0; writers make such masks of NaN.)
//
// Source: Lerc_c_api.h, https://github.com/Esri/lerc.

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include <Lerc_c_api.h>
#include <fmt/format.h>

#include "engine/base/buffer.h"
#include "engine/base/shared_library.h"
#include "engine/codec/codecs.h"

namespace batchfs {

namespace {

/// The library's functions.
struct Lerc {
  decltype(&::lerc_getBlobInfo) info;
  decltype(&::lerc_decode) decode;

  Lerc() {
    const SharedLibrary library("libLerc.so.4", "the codec 'imagecodecs_lerc'");
    library.find(info, "lerc_getBlobInfo");
    library.find(decode, "lerc_decode");
  }
};

const Lerc& lerc() {
  static const Lerc functions;
  return functions;
}

/// The information about an image that lerc_getBlobInfo() writes, in its order.
struct Info {
  unsigned version, type, depth, columns, rows, bands, valid, size, masks;
};
constexpr unsigned kFloat32 = 6, kFloat64 = 7;
constexpr std::uint64_t kItemSizes[] = {1, 1, 2, 2, 4, 4, 4, 8};

Error damaged_lerc(const char* why) {
  return Error(ErrorCode::corrupt, fmt::format("the LERC data {}", why));
}

class LercCodec final : public Codec {
 public:
  LercCodec(std::unique_ptr<const Codec> zstd, std::unique_ptr<const Codec> zlib)
      : zstd_(std::move(zstd)), zlib_(std::move(zlib)) {
    lerc();  // fails now with any error that it would raise later
  }
  std::string_view name() const override { return "imagecodecs_lerc"; }
  std::optional<std::uint64_t> encoded_size(std::uint64_t) const override { return std::nullopt; }
  std::uint64_t encoded_bound(std::uint64_t decoded) const override {
    return 2 * decoded + (64 << 10);
  }
  /// The data inside Zstandard or zlib's format, a mask, and the library's own.
  std::uint64_t scratch_bytes(std::uint64_t decoded) const override {
    return encoded_bound(decoded) + 2 * decoded;
  }

  std::size_t decode(std::span<const std::byte> in, std::span<std::byte> out) const override {
    Buffer inner;
    if (const Codec* outer = outer_of(in)) {
      inner = Buffer(encoded_bound(out.size()));
      in = inner.span().first(outer->decode(in, inner.span()));
    }
    const auto* data = reinterpret_cast<const unsigned char*>(in.data());
    if (in.size() > std::numeric_limits<unsigned>::max()) throw damaged_lerc("are too long");
    const auto size = static_cast<unsigned>(in.size());
    Info info{};
    if (lerc().info(data, size, &info.version, nullptr, sizeof info / sizeof(unsigned), 0) != 0 ||
        info.type >= std::size(kItemSizes) || info.size > size)
      throw damaged_lerc("have no header of an image");
    const std::uint64_t item = kItemSizes[info.type];
    const std::uint64_t pixels = std::uint64_t{info.columns} * info.rows;
    if (info.depth == 0 || info.bands == 0 || info.depth > out.size() || info.bands > out.size() ||
        pixels > out.size() / item / info.depth / info.bands)
      throw damaged_lerc("have an image that is larger than the chunk");
    const auto masks = static_cast<int>(std::min(info.masks, info.bands));
    std::vector<unsigned char> valid(pixels * static_cast<std::uint64_t>(masks));
    if (lerc().decode(data, size, masks, masks > 0 ? valid.data() : nullptr,
                      static_cast<int>(info.depth), static_cast<int>(info.columns),
                      static_cast<int>(info.rows), static_cast<int>(info.bands), info.type,
                      out.data()) != 0)
      throw damaged_lerc("are truncated or damaged");
    if (info.type == kFloat32) set_invalid<float>(info, valid, out);
    if (info.type == kFloat64) set_invalid<double>(info, valid, out);
    return pixels * info.depth * info.bands * item;
  }

 private:
  const Codec* outer_of(std::span<const std::byte> in) const {
    constexpr unsigned char kZstd[] = {0x28, 0xb5, 0x2f, 0xfd};
    if (in.size() >= 4 && std::memcmp(in.data(), kZstd, 4) == 0) return zstd_.get();
    return !in.empty() && in[0] == std::byte{0x78} ? zlib_.get() : nullptr;
  }

  /// One mask holds for all bands, or each has its own.
  template <class T>
  static void set_invalid(const Info& info, std::span<const unsigned char> valid,
                          std::span<std::byte> out) {
    if (valid.empty()) return;
    const std::uint64_t pixels = std::uint64_t{info.columns} * info.rows;
    constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();
    for (std::uint64_t i = 0; i < pixels * info.bands; ++i) {
      if (valid[i % valid.size()] != 0) continue;
      for (std::uint64_t d = 0; d < info.depth; ++d)
        std::memcpy(out.data() + (i * info.depth + d) * sizeof(T), &kNaN, sizeof(T));
    }
  }

  const std::unique_ptr<const Codec> zstd_, zlib_;
};

}  // namespace

std::unique_ptr<Codec> make_lerc(const JsonRef& configuration, ChunkLayout& layout) {
  return std::make_unique<LercCodec>(make_zstd(configuration, layout),
                                     make_zlib(configuration, layout));
}

}  // namespace batchfs
