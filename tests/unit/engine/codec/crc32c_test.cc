#include "engine/codec/codecs.h"

#include "tests/unit/engine/codec/damage.h"

// The vectors, in Python:
// import numpy as np; from numcodecs.checksum32 import CRC32C
// a = np.arange(20, dtype="<i4")

namespace batchfs {
namespace crc32c_test {

Bytes values(int count) {
  Bytes a;
  for (int i = 0; i < count; ++i) a.push_back(static_cast<std::byte>(i));
  return a;
}

TEST(Crc32c, FollowsTheData) {
  const auto codec = make_codec("crc32c");
  std::vector<std::int32_t> a;
  for (int i = 0; i < 20; ++i) a.push_back(i);
  // CRC32C(location="end").encode(a)
  EXPECT_EQ(
      expect_decodes(
          *codec,
          hex("000000000100000002000000030000000400000005000000060000000700000008000000090000000a00"
              "00000b"
              "0000000c0000000d0000000e0000000f00000010000000110000001200000013000000e8cf06a9"),
          bytes_of(a)),
      0);
  EXPECT_EQ(codec->encoded_size(80), 84u);
}

TEST(Crc32c, OfEveryLengthAroundAWord) {
  const auto codec = make_codec("crc32c");
  const std::pair<int, const char*> ends[] = {
      // CRC32C(location="end").encode(bytes(range(n)))[n:].hex()
      {0, "00000000"}, {1, "51537d52"},  {7, "4ced59a3"},  {8, "3bbc2c8a"},
      {9, "a8c54471"}, {15, "f603ef68"}, {16, "eb08c9d9"}, {17, "175e4338"},
  };
  for (const auto& [length, digits] : ends) {
    Bytes encoded = values(length);
    const Bytes checksum = hex(digits);
    encoded.insert(encoded.end(), checksum.begin(), checksum.end());
    EXPECT_EQ(decode(*codec, encoded, static_cast<std::size_t>(length)), values(length));
  }
}

TEST(Crc32c, DecodesInPlace) {
  const auto codec = make_codec("crc32c");
  ASSERT_TRUE(codec->in_place());
  // CRC32C(location="end").encode(a)
  Bytes data = hex(
      "000000000100000002000000030000000400000005000000060000000700000008000000090000000a0000000b"
      "0000000c0000000d0000000e0000000f00000010000000110000001200000013000000e8cf06a9");
  EXPECT_EQ(codec->decode(data, std::span(data).first(80)), 80u);
  EXPECT_EQ(data[4], std::byte{1});
}

TEST(Crc32c, RefusesTooLittleAndTooMuch) {
  const auto codec = make_codec("crc32c");
  EXPECT_TRUE(fails(*codec, {}, 8));
  EXPECT_TRUE(fails(*codec, Bytes(3), 8));
  // CRC32C(location="end").encode(a)
  EXPECT_TRUE(
      fails(*codec,
            hex("000000000100000002000000030000000400000005000000060000000700000008000000090000000a"
                "0000000b"
                "0000000c0000000d0000000e0000000f00000010000000110000001200000013000000e8cf06a9"),
            79));
}

}  // namespace crc32c_test
}  // namespace batchfs
