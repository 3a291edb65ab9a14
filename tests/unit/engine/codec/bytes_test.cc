#include "engine/codec/codecs.h"

#include "tests/unit/engine/codec/damage.h"

// The vectors, in Python:
// import numpy as np
// both = lambda values, dtype: (np.array(values, dtype).tobytes(), np.array(values,
// dtype).astype(np.dtype(dtype).newbyteorder("<")).tobytes())

namespace batchfs {
namespace bytes_test {

void expect_swapped(const DataType& type, const Bytes& big, const Bytes& little) {
  const auto codec = make_codec("bytes", R"({"endian": "big"})", type);
  EXPECT_FALSE(codec->is_identity());
  EXPECT_EQ(decode(*codec, big, big.size()), little);
  Bytes in_place = big;
  EXPECT_EQ(codec->decode(in_place, in_place), big.size());
  EXPECT_EQ(in_place, little);
  const auto native = make_codec("bytes", R"({"endian": "little"})", type);
  EXPECT_TRUE(native->is_identity());
  EXPECT_EQ(decode(*native, little, little.size()), little);
}

TEST(BytesCodec, SwapsEveryKindOfWord) {
  // both([1, -2, 300], ">i2")[0]
  // both([1, -2, 300], ">i2")[1]
  expect_swapped(make_type(Kind::signed_int, 2), hex("0001fffe012c"), hex("0100feff2c01"));
  // both([1.5, -2], ">f4")[0]
  // both([1.5, -2], ">f4")[1]
  expect_swapped(make_type(Kind::floating, 4), hex("3fc00000c0000000"), hex("0000c03f000000c0"));
  // both([1, 2**63], ">u8")[0]
  // both([1, 2**63], ">u8")[1]
  expect_swapped(make_type(Kind::unsigned_int, 8), hex("00000000000000018000000000000000"),
                 hex("01000000000000000000000000000080"));
  // Swaps the two parts of a complex number separately, and each character.
  // both([1 + 2j, 3], ">c8")[0]
  // both([1 + 2j, 3], ">c8")[1]
  expect_swapped(make_type(Kind::complex, 8), hex("3f800000400000004040000000000000"),
                 hex("0000803f000000400000404000000000"));
  // both([1 + 2j], ">c16")[0]
  // both([1 + 2j], ">c16")[1]
  expect_swapped(make_type(Kind::complex, 16), hex("3ff00000000000004000000000000000"),
                 hex("000000000000f03f0000000000000040"));
  // both(["ab", "xyz"], ">U3")[0]
  // both(["ab", "xyz"], ">U3")[1]
  expect_swapped(make_type(Kind::unicode, 12),
                 hex("00000061000000620000000000000078000000790000007a"),
                 hex("61000000620000000000000078000000790000007a000000"));
  // both([5, "NaT"], ">M8[ns]")[0]
  // both([5, "NaT"], ">M8[ns]")[1]
  expect_swapped(datetime_ns(), hex("00000000000000058000000000000000"),
                 hex("05000000000000000000000000000080"));
}

TEST(BytesCodec, LeavesBytesInTheirOrder) {
  for (const DataType& type : {make_type(Kind::boolean, 1), make_type(Kind::signed_int, 1)})
    EXPECT_TRUE(make_codec("bytes", R"({"endian": "big"})", type)->is_identity());
  // b"abcdef"
  const Bytes text = hex("616263646566");
  EXPECT_EQ(
      decode(*make_codec("bytes", R"({"endian": "big"})", make_type(Kind::bytes, 3)), text, 6),
      text);
  EXPECT_EQ(decode(*make_codec("bytes", R"({"endian": "big"})", make_type(Kind::raw, 6)), text, 6),
            text);
}

TEST(BytesCodec, FieldsOfStructuresHaveTheirOwnOrder) {
  const Json dtype = parse_json(
      R"([["a", "<i2"], ["b", ">i4", [2]], ["c", [["d", ">f8"], ["e", "|S2"]]]])", "test");
  const DataType type = parse_v2_type(JsonRef(dtype, "dtype"), "");
  const auto codec = make_codec("bytes", "{}", type);  // as of format 2
  // np.array([(1, [2, 3], (4.5, b"xy"))] * 2, [("a", "<i2"), ("b", ">i4", 2), ("c", [("d", ">f8"),
  // ("e", "S2")])])
  const Bytes stored =
      hex("01000000000200000003401200000000000078790100000000020000000340120000000000007879");
  // np.array([(1, [2, 3], (4.5, b"xy"))] * 2, [("a", "<i2"), ("b", "<i4", 2), ("c", [("d", "<f8"),
  // ("e", "S2")])])
  const Bytes native =
      hex("01000200000003000000000000000000124078790100020000000300000000000000000012407879");
  EXPECT_EQ(decode(*codec, stored, stored.size()), native);
  // Format 3, where the codec has one order for all fields.
  EXPECT_EQ(decode(*make_codec("bytes", R"({"endian": "little"})", type), native, native.size()),
            native);
  const Bytes big =
      hex("00010000000200000003401200000000000078790001000000020000000340120000000000007879");
  EXPECT_EQ(decode(*make_codec("bytes", R"({"endian": "big"})", type), big, big.size()), native);
}

TEST(BytesCodec, RefusesTooMuchAndPartsOfElements) {
  const auto codec = make_codec("bytes", "{}", float32());
  EXPECT_EQ(failure([&] { decode(*codec, Bytes(12), 8); }),
            "the chunk has 12 bytes, 8 were expected");
  EXPECT_EQ(failure([&] { decode(*codec, Bytes(7), 8); }),
            "the chunk has 7 bytes, 8 were expected");
  EXPECT_EQ(decode(*codec, {}, 8).size(), 0u);
}

TEST(BytesCodec, RefusesConfigurationsThatCannotBe) {
  EXPECT_EQ(refusal("bytes", R"({"endian": "middle"})"),
            "bytes.endian: expected \"big\" or \"little\"");
  EXPECT_EQ(refusal("bytes", R"({"endian": 1})"), "bytes.endian: expected a string");
  EXPECT_EQ(refusal("bytes", R"({"endain": "big"})"),
            "bytes: unknown key 'endain', did you mean 'endian'?");
  EXPECT_EQ(refusal("bytes", "{}", make_type(Kind::variable_string, 0)),
            "variable-length values under the codec 'bytes' are not supported");
}

TEST(BytesCodec, HasAnOldName) {
  EXPECT_EQ(make_codec("endian", R"({"endian": "big"})")->name(), "bytes");
}

TEST(BytesCodec, SmallNumbersBecomeThoseInMemory) {
  ChunkLayout layout{{2}, float32(), {}};
  layout.stored = find_small_number("bfloat16");
  const auto codec = make_codec("bytes", R"({"endian": "big"})", layout);
  EXPECT_EQ(codec->encoded_size(8), 4u);
  EXPECT_EQ(decode(*codec, hex("3fc0c000"), 8), bytes_of(std::vector<float>{1.5F, -2}));
  EXPECT_EQ(failure([&] { decode(*codec, hex("3fc0c0"), 8); }),
            "the chunk has 3 bytes, 4 were expected");
  EXPECT_TRUE(fails(*codec, hex("3fc0c0003fc0"), 8));
  layout = {{4}, make_type(Kind::signed_int, 1), {}};
  layout.stored = find_small_number("int4");
  EXPECT_EQ(decode(*make_codec("bytes", "{}", layout), hex("07f80e5f"), 4), hex("07f8feff"));
}

}  // namespace bytes_test
}  // namespace batchfs
