#include "engine/codec/codecs.h"

#include "tests/unit/engine/codec/damage.h"

// The vectors, in Python:
// import numpy as np; from numcodecs import CRC32, Adler32
// a = np.arange(20, dtype="<i4")

namespace batchfs {
namespace checksum_test {

Bytes values() {
  std::vector<std::int32_t> a;
  for (int i = 0; i < 20; ++i) a.push_back(i);
  return bytes_of(a);
}

TEST(Crc32, StandsAtTheStartOrTheEnd) {
  const auto start = make_codec("crc32");
  // CRC32().encode(a)
  EXPECT_EQ(
      expect_decodes(
          *start,
          hex("894a68530000000001000000020000000300000004000000050000000600000007000000080000000900"
              "00000a"
              "0000000b0000000c0000000d0000000e0000000f00000010000000110000001200000013000000"),
          values()),
      0);
  const auto told = make_codec("crc32", R"({"location": "start"})");
  // CRC32(location="start").encode(a)
  EXPECT_EQ(
      decode(*told,
             hex("894a68530000000001000000020000000300000004000000050000000600000007000000080000000"
                 "90000000a"
                 "0000000b0000000c0000000d0000000e0000000f00000010000000110000001200000013000000"),
             80),
      values());
  const auto end = make_codec("crc32", R"({"location": "end"})");
  // CRC32(location="end").encode(a)
  EXPECT_EQ(
      expect_decodes(
          *end,
          hex("000000000100000002000000030000000400000005000000060000000700000008000000090000000a00"
              "00000b"
              "0000000c0000000d0000000e0000000f00000010000000110000001200000013000000894a6853"),
          values()),
      0);
  EXPECT_EQ(start->encoded_size(80), 84u);
}

TEST(Adler32, StandsAtTheStartOrTheEnd) {
  const auto start = make_codec("adler32");
  // Adler32().encode(a)
  EXPECT_EQ(
      expect_decodes(
          *start,
          hex("bf0018150000000001000000020000000300000004000000050000000600000007000000080000000900"
              "00000a"
              "0000000b0000000c0000000d0000000e0000000f00000010000000110000001200000013000000"),
          values()),
      0);
  const auto end = make_codec("adler32", R"({"location": "end"})");
  // Adler32(location="end").encode(a)
  EXPECT_EQ(
      expect_decodes(
          *end,
          hex("000000000100000002000000030000000400000005000000060000000700000008000000090000000a00"
              "00000b"
              "0000000c0000000d0000000e0000000f00000010000000110000001200000013000000bf001815"),
          values()),
      0);
  EXPECT_EQ(end->encoded_size(80), 84u);
}

TEST(Checksums, OfNothing) {
  // CRC32().encode(b"")
  EXPECT_EQ(decode(*make_codec("crc32"), hex("00000000"), 0).size(), 0u);
  // Adler32().encode(b"")
  EXPECT_EQ(decode(*make_codec("adler32"), hex("01000000"), 0).size(), 0u);
  for (const char* name : {"crc32", "adler32"})
    EXPECT_TRUE(fails(*make_codec(name), Bytes(3), 8)) << name;
}

TEST(Checksums, TheLocationIsChecked) {
  EXPECT_EQ(refusal("crc32", R"({"location": "middle"})"),
            "crc32.location: expected \"start\" or \"end\"");
  EXPECT_EQ(refusal("adler32", R"({"location": 4})"), "adler32.location: expected a string");
}

}  // namespace checksum_test
}  // namespace batchfs
