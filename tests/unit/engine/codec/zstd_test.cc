#include "engine/codec/codecs.h"

#include <numeric>

#include "tests/unit/engine/codec/damage.h"

// The vectors, in Python:
// import subprocess, numpy as np; from numcodecs import Zstd
// a = (np.arange(96) // 5).astype("<i4")
// stream = lambda data: subprocess.run(["zstd", "-c"], input=data, stdout=subprocess.PIPE).stdout
// # no size

namespace batchfs {
namespace zstd_test {

Bytes values() {
  std::vector<std::int32_t> a;
  for (int i = 0; i < 96; ++i) a.push_back(i / 5);
  return bytes_of(a);
}

TEST(Zstd, DecodesWhatNumcodecsWrites) {
  const auto codec = make_codec("zstd", R"({"level": 3})");
  // Zstd(level=3).encode(a)
  expect_decodes(*codec,
                 hex("28b52ffd608000050200c000000102030405060708090a0b0c0d0e0f101112130000001300201"
                     "1901c48184804"
                     "240712061201c981848144407220612011901c4818480424b74b9807da"),
                 values());
  // Zstd(level=0, checksum=True).encode(a)
  expect_decodes(*codec,
                 hex("28b52ffd648000050200c000000102030405060708090a0b0c0d0e0f101112130000001300201"
                     "1901c48184804"
                     "240712061201c981848144407220612011901c4818480424b74b9807daf238420f"),
                 values());
}

TEST(Zstd, AChecksumShowsEveryChange) {
  const auto codec = make_codec("zstd");
  // Zstd(level=1, checksum=True).encode(a)
  const Bytes encoded = hex(
      "28b52ffd648000050200c000000102030405060708090a0b0c0d0e0f1011121300000013002011901c48184804"
      "240712061201c981848144407220612011901c4818480424b74b9807daf238420f");
  EXPECT_EQ(unseen_changes(*codec, encoded, values()), 0);
}

TEST(Zstd, NeedsNoContentSize) {
  const auto codec = make_codec("zstd");
  // stream(a.tobytes())
  const Bytes encoded = hex(
      "28b52ffd0458050200c000000102030405060708090a0b0c0d0e0f1011121300000013002011901c4818480424"
      "0712061201c981848144407220612011901c4818480424b74b9807daf238420f");
  expect_decodes(*codec, encoded, values());
}

TEST(Zstd, DecodesSeveralFramesAndSkipsSkippableOnes) {
  const auto codec = make_codec("zstd");
  // A skippable frame of three bytes (RFC 8878, 3.1.2) stands between the two.
  // Zstd().encode(a[:50]) + bytes.fromhex("502a4d1803000000aabbcc") + stream(a[50:].tobytes())
  const Bytes encoded = hex(
      "28b52ffd20c81501005800000102030405060708090a002011901c48184804240712061201c9ed12e68136502a"
      "4d1803000000aabbcc28b52ffd04582d0100800a0000000b0c0d0e0f1011121300000009002011901c48184804"
      "240712061201c91d7144b9589fdd");
  EXPECT_EQ(decode(*codec, encoded, values().size()), values());
  unseen_changes(*codec, encoded, values());
}

TEST(Zstd, RefusesTrailingBytesAndNothingAtAll) {
  const auto codec = make_codec("zstd");
  // Zstd().encode(a) + b"\1\2\3\4"
  EXPECT_TRUE(fails(*codec,
                    hex("28b52ffd608000050200c000000102030405060708090a0b0c0d0e0f101112130000001300"
                        "2011901c48184804"
                        "240712061201c981848144407220612011901c4818480424b74b9807da01020304"),
                    values().size()));
  // No frames decode to no bytes, which the chain refuses.
  EXPECT_EQ(decode(*codec, {}, 8).size(), 0u);
}

TEST(Zstd, AFrameThatClaimsExabytesIsRefused) {
  const auto codec = make_codec("zstd");
  // Magic, single segment with an 8-byte content size of 2^60, one RLE block of 128 KiB, last.
  // bytes.fromhex("28b52ffd" "e0" "0000000000000010" "03001000")
  const Bytes encoded = hex("28b52ffde0000000000000001003001000");
  EXPECT_TRUE(fails(*codec, encoded, 4096));
}

}  // namespace zstd_test
}  // namespace batchfs
