#include "engine/write/piece_codec.h"

#include <cstring>
#include <random>
#include <vector>

#include <blosc.h>
#include <gtest/gtest.h>
#include <xxhash.h>

namespace batchfs {
namespace piece_codec_test {

std::vector<std::byte> noise(std::size_t size) {
  std::mt19937 random(1);
  std::vector<std::byte> bytes(size);
  for (std::byte& one : bytes) one = static_cast<std::byte>(random());
  return bytes;
}

bool decodes_to(std::span<const std::byte> stored, const std::vector<std::byte>& values) {
  std::vector<std::byte> decoded(values.size());
  return decode_slab(stored, decoded) && decoded == values;
}

TEST(PieceCodec, ASlabIsAChecksumAndABloscFrame) {
  std::vector<std::byte> values(40000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::byte>(i / 1000);
  const Buffer stored = encode_slab(values, 4);
  std::uint64_t checksum;
  std::memcpy(&checksum, stored.data(), sizeof checksum);
  EXPECT_EQ(checksum, XXH3_64bits(values.data(), values.size()));
  std::vector<std::byte> decoded(values.size());
  EXPECT_EQ(
      blosc_decompress_ctx(stored.data() + sizeof checksum, decoded.data(), decoded.size(), 1),
      static_cast<int>(values.size()));
  EXPECT_EQ(decoded, values);
  EXPECT_LT(stored.size(), values.size() / 10);
}

TEST(PieceCodec, AnyValuesComeBack) {
  for (const std::size_t size : {1, 3, 4, 100, 4096, 100000, 131072})
    for (const std::uint32_t itemsize : {1u, 2u, 4u, 8u, 16u, 300u}) {
      const std::size_t whole = size / itemsize * itemsize;
      if (whole == 0) continue;
      const std::vector<std::byte> values = noise(whole);
      const Buffer stored = encode_slab(values, itemsize);
      EXPECT_LE(stored.size(), encoded_slab_bound(whole));
      EXPECT_TRUE(decodes_to(stored.span(), values)) << size << " " << itemsize;
    }
}

TEST(PieceCodec, DamageIsFound) {
  std::vector<std::byte> values = noise(500);
  std::fill(values.begin() + 100, values.end(), std::byte{7});
  const Buffer stored = encode_slab(values, 4);
  for (std::size_t length = 0; length < stored.size(); ++length)
    EXPECT_FALSE(decodes_to(stored.span().first(length), values)) << length;
  std::vector<std::byte> decoded(values.size());
  for (std::size_t at = 0; at < stored.size(); ++at) {
    std::vector<std::byte> changed(stored.data(), stored.data() + stored.size());
    changed[at] ^= std::byte{0x10};
    // Some bits of the header do not affect the values.
    if (decode_slab(changed, decoded)) {
      EXPECT_EQ(decoded, values) << at;
    }
  }
  std::vector<std::byte> other(values.size() + 4);
  EXPECT_FALSE(decode_slab(stored.span(), other));
}

}  // namespace piece_codec_test
}  // namespace batchfs
