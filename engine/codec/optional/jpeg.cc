// JPEG images of 8 bits a sample, as TIFF files hold them: `imagecodecs_jpeg`, decoded by
// libjpeg-turbo. "tables" has the quantization and Huffman tables that all tiles of a file share,
// "colorspace_jpeg" and "colorspace_data" name the color spaces of the image and of the samples.
//
// Sources: ISO 10918-1; Adobe's TIFF Technical Note 2; imagecodecs' jpeg8_decode() for the color
// spaces.

#include <cctype>
#include <csetjmp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
// After <cstdio>, which it needs.
#include <jerror.h>
#include <jpeglib.h>

#include "engine/base/shared_library.h"
#include "engine/codec/codecs.h"
#include "engine/store/crypto.h"

namespace batchfs {

namespace {

/// The library's functions.
struct Jpeg {
  decltype(&::jpeg_std_error) standard_errors;
  decltype(&::jpeg_CreateDecompress) create;
  decltype(&::jpeg_destroy_decompress) destroy;
  decltype(&::jpeg_mem_src) read_from;
  decltype(&::jpeg_read_header) read_header;
  decltype(&::jpeg_calc_output_dimensions) find_size;
  decltype(&::jpeg_start_decompress) start;
  decltype(&::jpeg_read_scanlines) read_lines;
  decltype(&::jpeg_finish_decompress) finish;

  Jpeg() {
    const SharedLibrary library("libjpeg.so.62", "the codec 'imagecodecs_jpeg'");
    library.find(standard_errors, "jpeg_std_error");
    library.find(create, "jpeg_CreateDecompress");
    library.find(destroy, "jpeg_destroy_decompress");
    library.find(read_from, "jpeg_mem_src");
    library.find(read_header, "jpeg_read_header");
    library.find(find_size, "jpeg_calc_output_dimensions");
    library.find(start, "jpeg_start_decompress");
    library.find(read_lines, "jpeg_read_scanlines");
    library.find(finish, "jpeg_finish_decompress");
  }
};

const Jpeg& jpeg() {
  static const Jpeg functions;
  return functions;
}

/// A progressive image may have any number of scans over all of it. libjpeg-turbo's own guard has
/// the same limit.
constexpr int kMostScans = 500;

struct Color {
  J_COLOR_SPACE jpeg = JCS_UNKNOWN, data = JCS_UNKNOWN;
};

/// One decoding. libjpeg ends with a jump over the frames of its callers, which must have nothing
/// to destroy: all is held here.
class Decoding {
 public:
  Decoding() {
    image_.err = jpeg().standard_errors(&errors_);
    errors_.error_exit = [](j_common_ptr image) {
      auto& it = of(image);
      image->err->format_message(image, it.why_);
      it.code_ =
          is_unsupported(image->err->msg_code) ? ErrorCode::not_supported : ErrorCode::corrupt;
      std::longjmp(it.jump_, 1);
    };
    errors_.emit_message = [](j_common_ptr image, int level) {
      if (level < 0 && !is_harmless(image->err->msg_code)) image->err->error_exit(image);
    };
    progress_.progress_monitor = [](j_common_ptr image) {
      if (reinterpret_cast<j_decompress_ptr>(image)->input_scan_number > kMostScans)
        of(image).fail("it has too many scans");
    };
    image_.client_data = this;
  }
  ~Decoding() { jpeg().destroy(&image_); }
  Decoding(const Decoding&) = delete;

  /// Returns the bytes written to `out`. Throws corrupt.
  std::size_t run(std::span<const std::byte> tables, std::span<const std::byte> in, Color color,
                  std::span<std::byte> out) {
    if (setjmp(jump_) != 0)
      throw Error(
          code_,
          fmt::format("the JPEG data {}: {}",
                      code_ == ErrorCode::corrupt ? "are damaged" : "are not supported", why_));
    return decode(tables, in, color, out);
  }

 private:
  static Decoding& of(j_common_ptr image) { return *static_cast<Decoding*>(image->client_data); }

  /// All other warnings mean that samples are lost.
  static bool is_harmless(int code) {
    return code == JWRN_ADOBE_XFORM || code == JWRN_EXTRANEOUS_DATA || code == JWRN_JFIF_MAJOR ||
           code == JWRN_TOO_MUCH_DATA;
  }

  static bool is_unsupported(int code) {
    return code == JERR_ARITH_NOTIMPL || code == JERR_BAD_PRECISION ||
           code == JERR_CONVERSION_NOTIMPL || code == JERR_SOF_UNSUPPORTED;
  }

  [[noreturn]] void fail(const char* why) {
    std::snprintf(why_, sizeof why_, "%s", why);
    std::longjmp(jump_, 1);
  }

  void read_from(std::span<const std::byte> bytes) {
    jpeg().read_from(&image_, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  }

  std::size_t decode(std::span<const std::byte> tables, std::span<const std::byte> in, Color color,
                     std::span<std::byte> out) {
    jpeg().create(&image_, JPEG_LIB_VERSION, sizeof image_);
    image_.client_data = this;
    image_.progress = &progress_;
    if (!tables.empty()) {
      read_from(tables);
      jpeg().read_header(&image_, FALSE);
    }
    read_from(in);
    jpeg().read_header(&image_, TRUE);
    if (color.jpeg != JCS_UNKNOWN) image_.jpeg_color_space = color.jpeg;
    const J_COLOR_SPACE data = color.data != JCS_UNKNOWN ? color.data : color.jpeg;
    if (data != JCS_UNKNOWN) image_.out_color_space = data;
    jpeg().find_size(&image_);
    const std::uint64_t line = std::uint64_t{image_.output_width} *
                               static_cast<std::uint64_t>(image_.out_color_components);
    if (line == 0 || image_.output_height > out.size() / line)
      fail("its image is larger than the chunk");
    jpeg().start(&image_);
    auto* to = reinterpret_cast<JSAMPROW>(out.data());
    while (image_.output_scanline < image_.output_height) {
      JSAMPROW row = to + image_.output_scanline * line;
      jpeg().read_lines(&image_, &row, 1);
    }
    jpeg().finish(&image_);
    return line * image_.output_height;
  }

  jpeg_error_mgr errors_{};
  jpeg_progress_mgr progress_{};
  jpeg_decompress_struct image_{};
  std::jmp_buf jump_{};
  ErrorCode code_ = ErrorCode::corrupt;
  char why_[JMSG_LENGTH_MAX] = {};
};

class JpegCodec final : public Codec {
 public:
  JpegCodec(std::vector<std::byte> tables, std::vector<std::byte> header, Color color)
      : tables_(std::move(tables)), header_(std::move(header)), color_(color) {
    jpeg();  // fails now with any error that it would raise later
  }
  std::string_view name() const override { return "imagecodecs_jpeg"; }
  std::optional<std::uint64_t> encoded_size(std::uint64_t) const override { return std::nullopt; }
  /// A coefficient takes up to 27 bits. Tables and comments come first.
  std::uint64_t encoded_bound(std::uint64_t decoded) const override {
    return 4 * decoded + (256 << 10);
  }
  /// A progressive image's coefficients, of 16 bits, and lines.
  std::uint64_t scratch_bytes(std::uint64_t decoded) const override {
    return 3 * decoded + (256 << 10);
  }

  std::size_t decode(std::span<const std::byte> in, std::span<std::byte> out) const override {
    std::vector<std::byte> whole;
    if (!header_.empty()) {
      whole = header_;
      whole.insert(whole.end(), in.begin(), in.end());
      for (const int end : {0xff, JPEG_EOI}) whole.push_back(static_cast<std::byte>(end));
      in = whole;
    }
    const auto decoding = std::make_unique<Decoding>();
    return decoding->run(tables_, in, color_, out);
  }

 private:
  const std::vector<std::byte> tables_, header_;
  const Color color_;
};

/// "RGB", its number, or null.
J_COLOR_SPACE color_space(const JsonRef& configuration, const char* key) {
  const auto given = configuration.find(key);
  if (!given || given->is_null()) return JCS_UNKNOWN;
  if (given->is_number()) return static_cast<J_COLOR_SPACE>(given->integer(0, JCS_YCCK));
  constexpr std::pair<const char*, J_COLOR_SPACE> kNames[] = {{"GRAYSCALE", JCS_GRAYSCALE},
                                                              {"MINISBLACK", JCS_GRAYSCALE},
                                                              {"RGB", JCS_RGB},
                                                              {"YCBCR", JCS_YCbCr},
                                                              {"CMYK", JCS_CMYK},
                                                              {"YCCK", JCS_YCCK}};
  std::string name = given->string();
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  for (const auto& [known, space] : kNames)
    if (name == known) return space;
  throw given->error("the color space is not one of JPEG's", ErrorCode::not_supported);
}

std::vector<std::byte> base64_bytes(const JsonRef& configuration, const char* key) {
  const auto given = configuration.find(key);
  if (!given || given->is_null()) return {};
  const std::string bytes = from_base64(given->string());
  const auto* begin = reinterpret_cast<const std::byte*>(bytes.data());
  return {begin, begin + bytes.size()};
}

}  // namespace

std::unique_ptr<Codec> make_jpeg(const JsonRef& configuration, ChunkLayout&) {
  return std::make_unique<JpegCodec>(base64_bytes(configuration, "tables"),
                                     base64_bytes(configuration, "header"),
                                     Color{color_space(configuration, "colorspace_jpeg"),
                                           color_space(configuration, "colorspace_data")});
}

}  // namespace batchfs
