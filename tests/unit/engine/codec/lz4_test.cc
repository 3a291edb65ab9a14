#include "engine/codec/codecs.h"

#include "tests/unit/engine/codec/damage.h"

// The vectors, in Python:
// import numpy as np; from numcodecs import LZ4
// a = (np.arange(96) // 5).astype("<i4")

namespace batchfs {
namespace lz4_test {

Bytes values() {
  std::vector<std::int32_t> a;
  for (int i = 0; i < 96; ++i) a.push_back(i / 5);
  return bytes_of(a);
}

TEST(Lz4, DecodesWhatNumcodecsWrites) {
  const auto codec = make_codec("lz4", R"({"acceleration": 1})");
  // LZ4().encode(a)
  expect_decodes(*codec,
                 hex("800100001f000100001f010400001f020400001f030400001f040400001f050400001f0604000"
                     "01f070400001f"
                     "080400001f090400001f0a0400001f0b0400001f0c0400001f0d0400001f0e0400001f0f04000"
                     "01f100400001f"
                     "110400001e120400500013000000"),
                 values());
  // LZ4(acceleration=10).encode(a)
  expect_decodes(*codec,
                 hex("800100001f000100001f010400001f020400001f030400001f040400001f050400001f0604000"
                     "01f070400001f"
                     "080400001f090400001f0a0400001f0b0400001f0c0400001f0d0400001f0e0400001f0f04000"
                     "01f100400001f"
                     "110400001e120400500013000000"),
                 values());
  // LZ4().encode(b"x")
  expect_decodes(*codec, hex("010000001078"), bytes_of(std::vector<char>{'x'}));
}

TEST(Lz4, RefusesNothing) { EXPECT_TRUE(fails(*make_codec("lz4"), {}, 8)); }

TEST(Lz4, AClaimOfMoreThanTheChunkIsRefusedBeforeDecoding) {
  const auto codec = make_codec("lz4");
  // LZ4().encode(a)
  Bytes encoded = hex(
      "800100001f000100001f010400001f020400001f030400001f040400001f050400001f060400001f070400001f"
      "080400001f090400001f0a0400001f0b0400001f0c0400001f0d0400001f0e0400001f0f0400001f100400001f"
      "110400001e120400500013000000");
  for (int i = 0; i < 4; ++i) encoded[static_cast<std::size_t>(i)] = std::byte{0xff};
  EXPECT_EQ(failure([&] { decode(*codec, encoded, values().size()); }),
            "the LZ4 data hold 4294967295 bytes, 384 were expected");
}

TEST(Lz4, ALengthThatDisagreesWithTheBlockIsRefused) {
  const auto codec = make_codec("lz4");
  // LZ4().encode(a)
  Bytes encoded = hex(
      "800100001f000100001f010400001f020400001f030400001f040400001f050400001f060400001f070400001f"
      "080400001f090400001f0a0400001f0b0400001f0c0400001f0d0400001f0e0400001f0f0400001f100400001f"
      "110400001e120400500013000000");
  encoded[0] = std::byte{0x7f};  // 383 of 384
  EXPECT_TRUE(fails(*codec, encoded, values().size()));
}

}  // namespace lz4_test
}  // namespace batchfs
