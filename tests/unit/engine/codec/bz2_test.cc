#include "engine/codec/codecs.h"

#include "tests/unit/engine/codec/damage.h"

// The vectors, in Python:
// import bz2, numpy as np; from numcodecs import BZ2
// a = (np.arange(96) // 5).astype("<i4")

namespace batchfs {
namespace bz2_test {

Bytes values() {
  std::vector<std::int32_t> a;
  for (int i = 0; i < 96; ++i) a.push_back(i / 5);
  return bytes_of(a);
}

TEST(Bz2, DecodesWhatNumcodecsWrites) {
  const auto codec = make_codec("bz2", R"({"level": 1})");
  // BZ2(level=1).encode(a)
  expect_decodes(*codec,
                 hex("425a6831314159265359cf706446000001e0007ffff800200050a6134d01a6208a4d469a01934"
                     "cc34494d1354a"
                     "a6c964dd384e53a4ed3c4f52e980bc7c9949145261453f177245385090cf706446"),
                 values());
  // BZ2(level=9).encode(a)
  expect_decodes(*codec,
                 hex("425a6839314159265359cf706446000001e0007ffff800200050a6134d01a6208a4d469a01934"
                     "cc34494d1354a"
                     "a6c964dd384e53a4ed3c4f52e980bc7c9949145261453f177245385090cf706446"),
                 values());
}

TEST(Bz2, DecodesSeveralStreams) {
  const auto codec = make_codec("bz2");
  // bz2.compress(a[:50]) + bz2.compress(a[50:])
  EXPECT_EQ(decode(*codec,
                   hex("425a68393141592653598e6e10f4000001e0007fe0400020003100d34d02290d0f5129c2653"
                       "4969b4e2752040a"
                       "8a29ea453e2ee48a70a1211cdc21e8425a683931415926535981dd8b6a0000456000401ff80"
                       "020003100d34d01"
                       "4aa341a7a99ccd4ea773c9ecdcfa64c487e2ee48a70a12103bb16d40"),
                   values().size()),
            values());
}

TEST(Bz2, SaysWhetherTheDataAreShortLongOrDamaged) {
  const auto codec = make_codec("bz2");
  // bz2.compress(a)
  const Bytes encoded = hex(
      "425a6839314159265359cf706446000001e0007ffff800200050a6134d01a6208a4d469a01934cc34494d1354a"
      "a6c964dd384e53a4ed3c4f52e980bc7c9949145261453f177245385090cf706446");
  EXPECT_EQ(failure([&] { decode(*codec, std::span(encoded).first(40), 1000); }),
            "the bzip2 data are truncated");
  EXPECT_EQ(failure([&] { decode(*codec, encoded, 383); }),
            "the bzip2 data decode to more than was expected");
  Bytes damaged = encoded;
  damaged[20] ^= std::byte{0xff};
  EXPECT_EQ(failure([&] { decode(*codec, damaged, 384); }), "the bzip2 data are damaged");
  // No streams decode to no bytes, which the chain refuses.
  EXPECT_EQ(decode(*codec, {}, 8).size(), 0u);
}

TEST(Bz2, TheChecksumsShowChanges) {
  const auto codec = make_codec("bz2");
  // bz2.compress(a)
  const Bytes encoded = hex(
      "425a6839314159265359cf706446000001e0007ffff800200050a6134d01a6208a4d469a01934cc34494d1354a"
      "a6c964dd384e53a4ed3c4f52e980bc7c9949145261453f177245385090cf706446");
  EXPECT_EQ(unseen_changes(*codec, encoded, values()), 0);
}

}  // namespace bz2_test
}  // namespace batchfs
