// The codecs whose libraries this build is without, each by its BATCHFS_WITHOUT_...: they are
// refused by name, with what to build.

#include <fmt/format.h>

#include "engine/codec/codecs.h"

namespace batchfs {

namespace {

[[maybe_unused, noreturn]] void refuse(const char* codec, const char* library, const char* option) {
  throw Error(ErrorCode::not_supported,
              fmt::format("the codec '{}' is not supported: this batchfs was built without {} ({})",
                          codec, library, option));
}

}  // namespace

#ifdef BATCHFS_WITHOUT_GRIB
std::unique_ptr<Codec> make_grib(const JsonRef&, ChunkLayout&) {
  refuse("grib", "ecCodes", "BATCHFS_GRIB");
}
#endif

#ifdef BATCHFS_WITHOUT_JPEG
std::unique_ptr<Codec> make_jpeg(const JsonRef&, ChunkLayout&) {
  refuse("imagecodecs_jpeg", "libjpeg-turbo", "BATCHFS_JPEG");
}
#endif

#ifdef BATCHFS_WITHOUT_JPEG2K
std::unique_ptr<Codec> make_jpeg2k(const JsonRef&, ChunkLayout&) {
  refuse("imagecodecs_jpeg2k", "OpenJPEG", "BATCHFS_JPEG2K");
}
#endif

#ifdef BATCHFS_WITHOUT_LERC
std::unique_ptr<Codec> make_lerc(const JsonRef&, ChunkLayout&) {
  refuse("imagecodecs_lerc", "LERC", "BATCHFS_LERC");
}
#endif

#ifdef BATCHFS_WITHOUT_SZIP
std::unique_ptr<Codec> make_szip(const JsonRef&, ChunkLayout&) {
  refuse("imagecodecs_szip", "libaec", "BATCHFS_SZIP");
}
#endif

#ifdef BATCHFS_WITHOUT_WEBP
std::unique_ptr<Codec> make_webp(const JsonRef&, ChunkLayout&) {
  refuse("imagecodecs_webp", "libwebp", "BATCHFS_WEBP");
}
#endif

#ifdef BATCHFS_WITHOUT_ZFP
std::unique_ptr<Codec> make_zfpy(const JsonRef&, ChunkLayout&) {
  refuse("zfpy", "zfp", "BATCHFS_ZFP");
}
#endif

}  // namespace batchfs
