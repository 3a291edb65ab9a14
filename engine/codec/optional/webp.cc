// WebP images, as TIFF files hold them: `imagecodecs_webp`, decoded by libwebp. Samples are red,
// green, blue, and alpha where the image has it or "hasalpha" is true.

#include <memory>

#include <webp/decode.h>

#include "engine/base/shared_library.h"
#include "engine/codec/codecs.h"

namespace batchfs {

namespace {

/// The library's functions.
struct Webp {
  decltype(&::WebPGetFeaturesInternal) features;
  decltype(&::WebPDecodeRGBInto) decode_rgb;
  decltype(&::WebPDecodeRGBAInto) decode_rgba;

  Webp() {
    const SharedLibrary library("libwebp.so.7", "the codec 'imagecodecs_webp'");
    library.find(features, "WebPGetFeaturesInternal");
    library.find(decode_rgb, "WebPDecodeRGBInto");
    library.find(decode_rgba, "WebPDecodeRGBAInto");
  }
};

const Webp& webp() {
  static const Webp functions;
  return functions;
}

Error damaged_webp(const char* why) {
  return Error(ErrorCode::corrupt, std::string("the WebP data ") + why);
}

class WebpCodec final : public Codec {
 public:
  explicit WebpCodec(std::optional<bool> has_alpha) : has_alpha_(has_alpha) {
    webp();  // fails now with any error that it would raise later
  }
  std::string_view name() const override { return "imagecodecs_webp"; }
  std::optional<std::uint64_t> encoded_size(std::uint64_t) const override { return std::nullopt; }
  std::uint64_t encoded_bound(std::uint64_t decoded) const override {
    return 2 * decoded + (64 << 10);
  }
  /// A lossless image is decoded as pixels of 32 bits first, beside its tables.
  std::uint64_t scratch_bytes(std::uint64_t decoded) const override {
    return 2 * decoded + (1 << 20);
  }

  std::size_t decode(std::span<const std::byte> in, std::span<std::byte> out) const override {
    const auto* data = reinterpret_cast<const std::uint8_t*>(in.data());
    WebPBitstreamFeatures image;
    if (webp().features(data, in.size(), &image, WEBP_DECODER_ABI_VERSION) != VP8_STATUS_OK)
      throw damaged_webp("have no header of an image");
    if (image.has_animation != 0)
      throw Error(ErrorCode::not_supported, "WebP data with several images are not supported");
    const bool alpha = has_alpha_.value_or(image.has_alpha != 0);
    const auto line = static_cast<std::uint64_t>(image.width) * (alpha ? 4 : 3);
    const std::uint64_t bytes = line * static_cast<std::uint64_t>(image.height);
    if (bytes > out.size()) throw damaged_webp("have an image that is larger than the chunk");
    auto* to = reinterpret_cast<std::uint8_t*>(out.data());
    const auto decode = alpha ? webp().decode_rgba : webp().decode_rgb;
    if (decode(data, in.size(), to, bytes, static_cast<int>(line)) == nullptr)
      throw damaged_webp("are truncated or damaged");
    return bytes;
  }

 private:
  const std::optional<bool> has_alpha_;  // nullopt: as the image has
};

}  // namespace

std::unique_ptr<Codec> make_webp(const JsonRef& configuration, ChunkLayout&) {
  std::optional<bool> has_alpha;
  if (const auto given = configuration.find("hasalpha"); given && !given->is_null())
    has_alpha = given->boolean();
  if (const auto index = configuration.find("index"); index && !index->is_null())
    index->integer(0, 0);  // of an image with several
  return std::make_unique<WebpCodec>(has_alpha);
}

}  // namespace batchfs
