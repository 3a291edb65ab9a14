// numcodecs' crc32 and adler32: a little-endian checksum before the data (`location`: "start", the
// default, or "end").

#include <libdeflate.h>

#include "engine/codec/checksum_codec.h"
#include "engine/codec/codecs.h"

namespace batchfs {

std::unique_ptr<Codec> make_crc32(const JsonRef& configuration, ChunkLayout&) {
  return make_checksum_codec(
      "crc32",
      [](std::span<const std::byte> data, std::uint32_t stored) {
        return libdeflate_crc32(0, data.data(), data.size()) == stored;
      },
      checksum_location(configuration, ChecksumAt::start));
}

std::unique_ptr<Codec> make_adler32(const JsonRef& configuration, ChunkLayout&) {
  return make_checksum_codec(
      "adler32",
      [](std::span<const std::byte> data, std::uint32_t stored) {
        return libdeflate_adler32(1, data.data(), data.size()) == stored;
      },
      checksum_location(configuration, ChecksumAt::start));
}

}  // namespace batchfs
