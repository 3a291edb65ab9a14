#include "engine/codec/codecs.h"

#include "tests/unit/engine/codec/damage.h"

// The vectors, in Python:
// import zlib, gzip, numpy as np; from numcodecs import GZip, Zlib
// a = (np.arange(96) // 5).astype("<i4")

namespace batchfs {
namespace gzip_test {

Bytes values() {
  std::vector<std::int32_t> a;
  for (int i = 0; i < 96; ++i) a.push_back(i / 5);
  return bytes_of(a);
}

TEST(Gzip, DecodesWhatNumcodecsWrites) {
  const auto codec = make_codec("gzip", R"({"level": 5})");
  // GZip(level=1).encode(a)[:4] + bytes(4) + GZip(level=1).encode(a)[8:]
  expect_decodes(*codec,
                 hex("1f8b08000000000004ff65c8c11240200000d18452a8f0ffff6acfdbceece58530b7403e627ec"
                     "5fc86f91df309"
                     "f319f307e60be62be64fcc5f98bf31df30df313f30ff60fec5fc87fd596639d580010000"),
                 values());
  // gzip.compress(a, 0, mtime=0)[:10] + gzip.compress(a, 9, mtime=0)[10:]
  expect_decodes(*codec,
                 hex("1f8b08000000000004036dc3411240200000c0104522f9ff5f75b73bb321fc4d38e3821157dc3"
                     "061c61d0f2c78"
                     "62c50b6f6cf860c777fc00596639d580010000"),
                 values());
}

TEST(Gzip, TheChecksumShowsEveryChangeOfTheData) {
  const auto codec = make_codec("gzip");
  // gzip.compress(a, 9, mtime=0)
  const Bytes encoded = hex(
      "1f8b08000000000002036dc3411240200000c0104522f9ff5f75b73bb321fc4d38e3821157dc3061c61d0f2c78"
      "62c50b6f6cf860c777fc00596639d580010000");
  EXPECT_EQ(unseen_changes(*codec, encoded, values()), 0);
}

TEST(Gzip, DecodesSeveralMembersAndNamesInHeaders) {
  const auto codec = make_codec("gzip");
  // The second member has a file name (flag 8, RFC 1952 section 2.3.1).
  // gzip.compress(a[:50], mtime=0) + bytes.fromhex("1f8b080800000000020361626300") +
  // gzip.compress(a[50:], mtime=0)[10:]
  const Bytes encoded = hex(
      "1f8b08000000000002036360c0048c58301316cc8c05b360c1ac58301b16cc8e057360c19c583000c0b05a56c8"
      "0000001f8b080800000000020361626300e3626060e042c3dc58300f16cc8b05f361c1fc58b000162c88050b61"
      "c1c2400c007b69d4cfb8000000");
  EXPECT_EQ(decode(*codec, encoded, values().size()), values());
  EXPECT_EQ(unseen_changes(*codec, encoded, values()), 0);
}

TEST(Gzip, RefusesNothingAndTooMuch) {
  const auto codec = make_codec("gzip");
  EXPECT_TRUE(fails(*codec, {}, 8));
  // gzip.compress(bytes(100000), mtime=0)
  const Bytes zeros = hex(
      "1f8b0800000000000203edc13101000000c2a0f54f6d0d0fa00000000000000000000000000000000000000000"
      "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
      "000000000000000000000000000000000000000000000000000000000000008057037d9511d4a0860100");
  EXPECT_EQ(failure([&] { decode(*codec, zeros, 99999); }),
            "the gzip data decode to more than was expected");
}

TEST(Zlib, DecodesWhatNumcodecsWrites) {
  const auto codec = make_codec("zlib", R"({"level": 1})");
  // zlib.compress(b"")
  EXPECT_EQ(decode(*codec, hex("789c030000000001"), 0).size(), 0u);
  // Zlib(level=1).encode(a)
  expect_decodes(*codec,
                 hex("780165c8c11240200000d18452a8f0ffff6acfdbceece58530b7403e627ec5fc86f91df309f31"
                     "9f307e60be62b"
                     "e64fcc5f98bf31df30df313f30ff60fec5fc87fdb1cf036b"),
                 values());
  // RFC 1950 ends with a checksum of the data.
  // Zlib(level=9).encode(a)
  EXPECT_EQ(expect_decodes(*codec,
                           hex("78da6dc3411240200000c0104522f9ff5f75b73bb321fc4d38e3821157dc3061c61"
                               "d0f2c7862c50b6f6cf860c7"
                               "77fc00b1cf036b"),
                           values()),
            0);
}

TEST(Zlib, RefusesNothingTooMuchAndDictionaries) {
  const auto codec = make_codec("zlib");
  EXPECT_TRUE(fails(*codec, {}, 8));
  // zlib.compress(bytes(100000))
  const Bytes zeros = hex(
      "789cedc13101000000c2a0f54f6d0d0fa000000000000000000000000000000000000000000000000000000000"
      "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
      "000000000000000000000000000000000000000000000080570386af0001");
  EXPECT_EQ(failure([&] { decode(*codec, zeros, 99999); }),
            "the zlib data decode to more than was expected");
  // FDICT (RFC 1950 section 2.2): the dictionary is not available.
  // (lambda c: c.compress(bytes(10)) + c.flush())(zlib.compressobj(zdict=b"dictionary"))
  const Bytes preset = hex("78bb16c0043763800300000a0001");
  EXPECT_TRUE(fails(*codec, preset, 10));
}

}  // namespace gzip_test
}  // namespace batchfs
