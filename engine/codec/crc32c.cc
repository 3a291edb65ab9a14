// `crc32c`: a little-endian checksum after the data. Source: v3 core, codec "crc32c"; RFC 3720
// appendix B.4.

#include "engine/codec/crc32c.h"

#include <array>
#include <cstring>

#include "engine/codec/checksum_codec.h"
#include "engine/codec/codecs.h"

namespace batchfs {

namespace {

using Table = std::array<std::array<std::uint32_t, 256>, 8>;

/// Slicing-by-8 tables of the reflected polynomial 0x82f63b78.
constexpr Table make_table() {
  Table table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0x82f63b78u : 0u);
    table[0][i] = crc;
  }
  for (std::uint32_t i = 0; i < 256; ++i)
    for (std::size_t k = 1; k < 8; ++k)
      table[k][i] = (table[k - 1][i] >> 8) ^ table[0][table[k - 1][i] & 0xff];
  return table;
}
constexpr Table kTable = make_table();

std::uint32_t crc_portable(std::uint32_t crc, const std::byte* data, std::size_t size) {
  while (size >= 8) {
    std::uint64_t word;
    std::memcpy(&word, data, 8);
    word ^= crc;
    crc = 0;
    for (std::size_t k = 0; k < 8; ++k) crc ^= kTable[7 - k][(word >> (8 * k)) & 0xff];
    data += 8;
    size -= 8;
  }
  for (; size > 0; --size)
    crc = (crc >> 8) ^ kTable[0][(crc ^ static_cast<std::uint32_t>(*data++)) & 0xff];
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t crc_sse42(std::uint32_t crc, const std::byte* data,
                                                          std::size_t size) {
  std::uint64_t wide = crc;
  for (; size >= 8; data += 8, size -= 8) {
    std::uint64_t word;
    std::memcpy(&word, data, 8);
    wide = __builtin_ia32_crc32di(wide, word);
  }
  crc = static_cast<std::uint32_t>(wide);
  for (; size > 0; --size) crc = __builtin_ia32_crc32qi(crc, static_cast<unsigned char>(*data++));
  return crc;
}
#endif

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return ~crc_sse42(~0u, bytes.data(), bytes.size());
#endif
  return ~crc_portable(~0u, bytes.data(), bytes.size());
}

std::unique_ptr<Codec> make_crc32c(const JsonRef& configuration, ChunkLayout&) {
  return make_checksum_codec(
      "crc32c",
      [](std::span<const std::byte> data, std::uint32_t stored) { return crc32c(data) == stored; },
      checksum_location(configuration, ChecksumAt::end));  // numcodecs' alone has a location
}

}  // namespace batchfs
