// numcodecs' `jenkins_lookup3`: HDF5's checksum of metadata, after the data, little-endian.
// Source: HDF5, H5_checksum_lookup3 (H5checksum.c), which is Bob Jenkins' lookup3.c, hashlittle().

#include <bit>

#include "engine/codec/checksum_codec.h"
#include "engine/codec/codecs.h"

namespace batchfs {

namespace {

/// Up to four bytes as a little-endian number.
std::uint32_t word_at(std::span<const std::byte> data, std::size_t at) {
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < 4 && at + i < data.size(); ++i)
    word |= std::to_integer<std::uint32_t>(data[at + i]) << (8 * i);
  return word;
}

std::uint32_t lookup3(std::span<const std::byte> data, std::uint32_t initial) {
  const auto size = static_cast<std::uint32_t>(data.size());
  std::uint32_t a = UINT32_C(0xdeadbeef) + size + initial, b = a, c = a;
  std::size_t at = 0;
  for (; data.size() - at > 12; at += 12) {
    a += word_at(data, at);
    b += word_at(data, at + 4);
    c += word_at(data, at + 8);
    a -= c, a ^= std::rotl(c, 4), c += b;
    b -= a, b ^= std::rotl(a, 6), a += c;
    c -= b, c ^= std::rotl(b, 8), b += a;
    a -= c, a ^= std::rotl(c, 16), c += b;
    b -= a, b ^= std::rotl(a, 19), a += c;
    c -= b, c ^= std::rotl(b, 4), b += a;
  }
  if (at == data.size()) return c;  // of no data only
  a += word_at(data, at);
  b += word_at(data, at + 4);
  c += word_at(data, at + 8);
  c ^= b, c -= std::rotl(b, 14);
  a ^= c, a -= std::rotl(c, 11);
  b ^= a, b -= std::rotl(a, 25);
  c ^= b, c -= std::rotl(b, 16);
  a ^= c, a -= std::rotl(c, 4);
  b ^= a, b -= std::rotl(a, 14);
  c ^= b, c -= std::rotl(b, 24);
  return c;
}

}  // namespace

std::unique_ptr<Codec> make_jenkins_lookup3(const JsonRef& configuration, ChunkLayout&) {
  std::uint32_t initial = 0;
  if (const auto given = configuration.find("initval"))
    initial = static_cast<std::uint32_t>(given->integer(0, UINT32_MAX));
  if (const auto prefix = configuration.find("prefix"); prefix && !prefix->is_null())
    throw prefix->error(
        "a prefix, which JSON cannot hold, is not supported; write the array again without it",
        ErrorCode::not_supported);
  return make_checksum_codec("jenkins_lookup3",
                             [initial](std::span<const std::byte> data, std::uint32_t stored) {
                               return lookup3(data, initial) == stored;
                             });
}

}  // namespace batchfs
