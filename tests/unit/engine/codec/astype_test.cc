#include "engine/codec/codecs.h"

#include "tests/unit/engine/codec/damage.h"

// The vectors, in Python:
// import numpy as np; from numcodecs import AsType, BitRound, Quantize
// f = np.array([0.1, -1.5, 255.9, -300.7, 1e6, 65504], "<f8")
// cast = lambda a, decoded, encoded: AsType(encode_dtype=encoded,
// decode_dtype=decoded).decode(a.astype(encoded).tobytes()) far = np.array([3e9, -3e9, 1e19,
// np.nan], "<f8")

namespace batchfs {
namespace astype_test {

Bytes cast(const std::string& decoded, const std::string& encoded, const Bytes& stored,
           std::size_t room) {
  const auto codec = make_codec(
      "astype", fmt::format(R"({{"encode_dtype": "{}", "decode_dtype": "{}"}})", encoded, decoded));
  return decode(*codec, stored, room);
}

TEST(AsType, CastsAsNumpyDoes) {
  // f.astype("<f4")
  // cast(f, "<f8", "<f4")
  EXPECT_EQ(cast("<f8", "<f4", hex("cdcccc3d0000c0bf66e67f439a5996c30024744900e07f47"), 48),
            hex("000000a09999b93f000000000000f8bf000000c0ccfc6f400000004033cb72c00000000080842e4100"
                "00000000"
                "fcef40"));
  // f.astype("<f2")
  // cast(f, "<f4", "<f2")
  EXPECT_EQ(cast("<f4", "<f2", hex("662e00beff5bb3dc007cff7b"), 24),
            hex("00c0cc3d0000c0bf00e07f43006096c30000807f00e07f47"));
  // f.astype("<f8")
  // cast(f, "<f2", "<f8")
  EXPECT_EQ(cast("<f2", "<f8",
                 hex("9a9999999999b93f000000000000f8bfcdccccccccfc6f403333333333cb72c00000000080842"
                     "e410000000000"
                     "fcef40"),
                 12),
            hex("662e00beff5bb3dc007cff7b"));
  // cast(f, "<i2", "<f8")
  EXPECT_EQ(cast("<i2", "<f8",
                 hex("9a9999999999b93f000000000000f8bfcdccccccccfc6f403333333333cb72c00000000080842"
                     "e410000000000"
                     "fcef40"),
                 12),
            hex("0000ffffff00d4fe4042e0ff"));
  // f.astype("<i4")
  // cast(f, "|u1", "<i4")
  EXPECT_EQ(cast("|u1", "<i4", hex("00000000ffffffffff000000d4feffff40420f00e0ff0000"), 6),
            hex("00ffffd440e0"));
  // f.astype("i1")
  // cast(f, "<i8", "|i1")
  EXPECT_EQ(cast("<i8", "|i1", hex("00ffffd440e0"), 48),
            hex("0000000000000000ffffffffffffffffffffffffffffffffd4ffffffffffffff4000000000000000e0"
                "ffffffff"
                "ffffff"));
  // f.astype("<i8")
  // cast(f, "<f4", "<i8")
  EXPECT_EQ(cast("<f4", "<i8",
                 hex("0000000000000000ffffffffffffffffff00000000000000d4feffffffffffff40420f0000000"
                     "000e0ff000000"
                     "000000"),
                 24),
            hex("00000000000080bf00007f43000096c30024744900e07f47"));
}

TEST(AsType, NumbersThatDoNotFitAreAsOnX86) {
  // far
  // cast(far, "<i4", "<f8")
  EXPECT_EQ(cast("<i4", "<f8",
                 hex("000000c00b5ae641000000c00b5ae6c1003d9160e458e143000000000000f87f"), 16),
            hex("00000080000000800000008000000080"));
  // cast(far, "<i2", "<f8")
  EXPECT_EQ(cast("<i2", "<f8",
                 hex("000000c00b5ae641000000c00b5ae6c1003d9160e458e143000000000000f87f"), 8),
            hex("0000000000000000"));
  // far
  // cast(far, "<i8", "<f8")
  EXPECT_EQ(cast("<i8", "<f8",
                 hex("000000c00b5ae641000000c00b5ae6c1003d9160e458e143000000000000f87f"), 32),
            hex("005ed0b20000000000a22f4dffffffff00000000000000800000000000000080"));
}

TEST(AsType, ToBooleanIsWhetherItIsZero) {
  // np.array([0, 1, 256, -1], "<i2")
  // cast(np.array([0, 1, 256, -1]), "|b1", "<i2")
  EXPECT_EQ(cast("|b1", "<i2", hex("000001000001ffff"), 4), hex("00010101"));
  // np.array([0, -0.0, 0.5, np.nan], "<f4")
  // cast(np.array([0, -0.0, 0.5, np.nan]), "|b1", "<f4")
  EXPECT_EQ(cast("|b1", "<f4", hex("00000000000000800000003f0000c07f"), 4), hex("00000101"));
}

TEST(AsType, ChangesTheTypeThatTheNextCodecSees) {
  ChunkLayout layout{{4}, float64(), {}};
  const auto codec =
      make_codec("astype", R"({"encode_dtype": "<i2", "decode_dtype": "<f8"})", layout);
  EXPECT_EQ(layout.type, make_type(Kind::signed_int, 2));
  EXPECT_EQ(codec->encoded_size(32), 8u);
}

TEST(Quantize, IsACastWhenReading) {
  const auto codec = make_codec("quantize", R"({"digits": 1, "dtype": "<f8", "astype": "<f4"})");
  // Quantize(1, "<f8", "<f4").encode(f)
  // Quantize(1, "<f8", "<f4").decode(Quantize(1, "<f8", "<f4").encode(f))
  EXPECT_EQ(decode(*codec, hex("0000003e0000c0bf00e07f43005896c30024744900e07f47"), 48),
            hex("000000000000c03f000000000000f8bf0000000000fc6f400000000000cb72c00000000080842e4100"
                "00000000"
                "fcef40"));
}

TEST(BitRound, LeavesNumbersAsTheyAre) {
  const auto codec = make_codec("bitround", R"({"keepbits": 4})", float32());
  // BitRound(4).encode(f.astype("<f4"))
  const Bytes encoded = hex("0000d03d0000c0bf00008043000098c30000784900008047");
  EXPECT_EQ(decode(*codec, encoded, 24), encoded);
}

TEST(AsType, RefusesTypesThatAreNoNumbers) {
  EXPECT_EQ(refusal("astype", R"({"encode_dtype": "<f4", "decode_dtype": "<M8[s]"})"),
            "astype.decode_dtype: filters of the data type datetime64[s] are not supported");
  // The array's own type, if the configuration has none.
  EXPECT_EQ(refusal("astype", "{}", make_type(Kind::bytes, 5)),
            "astype: filters of the data type |S5 are not supported");
  EXPECT_EQ(refusal("quantize", R"({"digits": 1})", make_type(Kind::complex, 8)),
            "quantize: filters of the data type complex64 are not supported");
  EXPECT_EQ(refusal("bitround", R"({"keepbits": 4})", make_type(Kind::bytes, 5)),
            "bitround: filters of the data type |S5 are not supported");
}

TEST(AsType, RefusesWhatDoesNotFit) {
  const auto codec = make_codec("astype", R"({"encode_dtype": "<i2", "decode_dtype": "<f8"})");
  EXPECT_TRUE(fails(*codec, Bytes(3), 100));
  EXPECT_TRUE(fails(*codec, Bytes(6), 23));
}

}  // namespace astype_test
}  // namespace batchfs
