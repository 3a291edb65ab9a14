// JPEG 2000 images, as TIFF files hold them: `imagecodecs_jpeg2k`, decoded by OpenJPEG: codestreams
// and JP2 files. Samples of up to 8, 16 and 32 bits are integers of 1, 2 and 4 bytes, those of all
// components of a pixel side by side. Color spaces are not converted, as imagecodecs does not.

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <openjpeg.h>

#include "engine/base/shared_library.h"
#include "engine/codec/codecs.h"

namespace batchfs {

namespace {

/// The library's functions.
struct OpenJpeg {
  decltype(&::opj_create_decompress) create;
  decltype(&::opj_destroy_codec) destroy_codec;
  decltype(&::opj_set_default_decoder_parameters) set_defaults;
  decltype(&::opj_setup_decoder) set_up;
  decltype(&::opj_set_error_handler) set_error_handler;
  decltype(&::opj_stream_create) create_stream;
  decltype(&::opj_stream_destroy) destroy_stream;
  decltype(&::opj_stream_set_user_data) set_user_data;
  decltype(&::opj_stream_set_user_data_length) set_length;
  decltype(&::opj_stream_set_read_function) set_read;
  decltype(&::opj_stream_set_skip_function) set_skip;
  decltype(&::opj_stream_set_seek_function) set_seek;
  decltype(&::opj_read_header) read_header;
  decltype(&::opj_decode) decode;
  decltype(&::opj_end_decompress) end;
  decltype(&::opj_image_destroy) destroy_image;

  OpenJpeg() {
    const SharedLibrary library("libopenjp2.so.7", "the codec 'imagecodecs_jpeg2k'");
    library.find(create, "opj_create_decompress");
    library.find(destroy_codec, "opj_destroy_codec");
    library.find(set_defaults, "opj_set_default_decoder_parameters");
    library.find(set_up, "opj_setup_decoder");
    library.find(set_error_handler, "opj_set_error_handler");
    library.find(create_stream, "opj_stream_create");
    library.find(destroy_stream, "opj_stream_destroy");
    library.find(set_user_data, "opj_stream_set_user_data");
    library.find(set_length, "opj_stream_set_user_data_length");
    library.find(set_read, "opj_stream_set_read_function");
    library.find(set_skip, "opj_stream_set_skip_function");
    library.find(set_seek, "opj_stream_set_seek_function");
    library.find(read_header, "opj_read_header");
    library.find(decode, "opj_decode");
    library.find(end, "opj_end_decompress");
    library.find(destroy_image, "opj_image_destroy");
  }
};

const OpenJpeg& open_jpeg() {
  static const OpenJpeg functions;
  return functions;
}

/// Bytes in memory as OpenJPEG reads them.
struct Source {
  std::span<const std::byte> bytes;
  std::size_t at = 0;

  static OPJ_SIZE_T read(void* to, OPJ_SIZE_T size, void* source) {
    auto& it = *static_cast<Source*>(source);
    size = std::min(size, it.bytes.size() - it.at);
    if (size == 0) return static_cast<OPJ_SIZE_T>(-1);
    std::memcpy(to, it.bytes.data() + it.at, size);
    it.at += size;
    return size;
  }
  static OPJ_OFF_T skip(OPJ_OFF_T size, void* source) {
    auto& it = *static_cast<Source*>(source);
    const auto left = static_cast<OPJ_OFF_T>(it.bytes.size() - it.at);
    if (size < 0 || left == 0) return -1;
    size = std::min(size, left);
    it.at += static_cast<std::size_t>(size);
    return size;
  }
  static OPJ_BOOL seek(OPJ_OFF_T to, void* source) {
    auto& it = *static_cast<Source*>(source);
    if (to < 0 || static_cast<std::uint64_t>(to) > it.bytes.size()) return OPJ_FALSE;
    it.at = static_cast<std::size_t>(to);
    return OPJ_TRUE;
  }
};

using CodecHandle = std::unique_ptr<opj_codec_t, decltype(&::opj_destroy_codec)>;
using StreamHandle = std::unique_ptr<opj_stream_t, decltype(&::opj_stream_destroy)>;
using ImageHandle = std::unique_ptr<opj_image_t, decltype(&::opj_image_destroy)>;

/// The layout of an image's samples.
struct Samples {
  std::uint64_t pixels, components, size;  // of a sample, bytes
  std::uint64_t bytes() const { return pixels * components * size; }
};

class Jpeg2kCodec final : public Codec {
 public:
  Jpeg2kCodec() {
    open_jpeg();  // fails now with any error that it would raise later
  }
  std::string_view name() const override { return "imagecodecs_jpeg2k"; }
  std::optional<std::uint64_t> encoded_size(std::uint64_t) const override { return std::nullopt; }
  std::uint64_t encoded_bound(std::uint64_t decoded) const override {
    return 4 * decoded + (64 << 10);
  }
  /// Samples of 32 bits, as an image and as a tile, and code blocks.
  std::uint64_t scratch_bytes(std::uint64_t decoded) const override {
    return 12 * decoded + (1 << 20);
  }

  std::size_t decode(std::span<const std::byte> in, std::span<std::byte> out) const override {
    const auto& library = open_jpeg();
    std::string why = "no reason is known";
    constexpr unsigned char kCodestream[] = {0xff, 0x4f, 0xff, 0x51};
    const bool is_bare = in.size() >= 4 && std::memcmp(in.data(), kCodestream, 4) == 0;
    const CodecHandle codec(library.create(is_bare ? OPJ_CODEC_J2K : OPJ_CODEC_JP2),
                            library.destroy_codec);
    const StreamHandle stream(library.create_stream(kStreamBuffer, OPJ_TRUE),
                              library.destroy_stream);
    if (codec == nullptr || stream == nullptr)
      throw Error(ErrorCode::no_memory, "no memory for the JPEG 2000 decoder");
    library.set_error_handler(
        codec.get(),
        [](const char* text, void* said) { static_cast<std::string*>(said)->assign(text); }, &why);
    Source source{in};
    library.set_user_data(stream.get(), &source, nullptr);
    library.set_length(stream.get(), in.size());
    library.set_read(stream.get(), Source::read);
    library.set_skip(stream.get(), Source::skip);
    library.set_seek(stream.get(), Source::seek);
    opj_dparameters_t parameters;
    library.set_defaults(&parameters);
    const auto check = [&why](OPJ_BOOL done) {
      while (!why.empty() && why.back() == '\n') why.pop_back();
      if (!done)
        throw Error(ErrorCode::corrupt, fmt::format("the JPEG 2000 data are damaged: {}", why));
    };
    check(library.set_up(codec.get(), &parameters));
    opj_image_t* header = nullptr;
    const OPJ_BOOL has_header = library.read_header(stream.get(), codec.get(), &header);
    const ImageHandle image(header, library.destroy_image);
    check(has_header && image != nullptr);
    const Samples samples = samples_of(*image);
    if (samples.bytes() > out.size())
      throw Error(ErrorCode::corrupt, "the JPEG 2000 image is larger than the chunk");
    check(library.decode(codec.get(), stream.get(), image.get()));
    check(library.end(codec.get(), stream.get()));
    write(*image, samples, out);
    return samples.bytes();
  }

 private:
  static constexpr OPJ_SIZE_T kStreamBuffer = 64 << 10;

  /// Throws for an image whose components differ, or are larger than any chunk.
  static Samples samples_of(const opj_image_t& image) {
    if (image.numcomps == 0) throw Error(ErrorCode::corrupt, "the JPEG 2000 image has no samples");
    const opj_image_comp_t& first = image.comps[0];
    for (OPJ_UINT32 c = 1; c < image.numcomps; ++c) {
      const opj_image_comp_t& other = image.comps[c];
      if (other.w != first.w || other.h != first.h || other.prec != first.prec ||
          other.sgnd != first.sgnd || other.dx != first.dx || other.dy != first.dy)
        throw Error(ErrorCode::not_supported,
                    "JPEG 2000 images whose components have different sizes or types are not "
                    "supported");
    }
    if (first.prec == 0 || first.prec > 32)
      throw Error(ErrorCode::corrupt, "the JPEG 2000 image has samples of an unknown size");
    const Samples samples{std::uint64_t{first.w} * first.h, image.numcomps,
                          first.prec <= 8    ? 1U
                          : first.prec <= 16 ? 2U
                                             : 4U};
    if (samples.pixels > std::numeric_limits<std::uint64_t>::max() / 4 / samples.components)
      throw Error(ErrorCode::corrupt, "the JPEG 2000 image is larger than the chunk");
    return samples;
  }

  static void write(const opj_image_t& image, const Samples& samples, std::span<std::byte> out) {
    for (std::uint64_t c = 0; c < samples.components; ++c) {
      const opj_image_comp_t& component = image.comps[c];
      if (component.data == nullptr || std::uint64_t{component.w} * component.h != samples.pixels)
        throw Error(ErrorCode::corrupt, "the JPEG 2000 data lack a component");
      std::byte* to = out.data() + c * samples.size;
      for (std::uint64_t i = 0; i < samples.pixels; ++i, to += samples.components * samples.size)
        std::memcpy(to, &component.data[i], samples.size);  // little-endian
    }
  }
};

}  // namespace

std::unique_ptr<Codec> make_jpeg2k(const JsonRef& configuration, ChunkLayout&) {
  if (const auto planar = configuration.find("planar");
      planar && !planar->is_null() && planar->boolean())
    throw planar->error("planes one after the other are not supported", ErrorCode::not_supported);
  return std::make_unique<Jpeg2kCodec>();
}

}  // namespace batchfs
