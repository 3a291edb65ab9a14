#include "engine/codec/codecs.h"

#include "tests/unit/engine/codec/damage.h"

// The vectors, in Python:
// import numpy as np
// a = np.arange(24, dtype="u1").reshape(2, 3, 4)

namespace batchfs {
namespace transpose_test {

Bytes ramp() {
  Bytes a;
  for (int i = 0; i < 24; ++i) a.push_back(static_cast<std::byte>(i));
  return a;
}

ChunkLayout layout(Dims shape, std::uint32_t itemsize = 1) {
  return {std::move(shape), make_type(Kind::raw, itemsize), {}};
}

TEST(Transpose, PutsTheDimensionsInAnyOrder) {
  struct Case {
    const char* order;
    Bytes encoded;
    Dims shape;
  };
  const Case cases[] = {
      {"[2, 1, 0]",
       // a.transpose(2, 1, 0).tobytes()
       hex("000c04100814010d05110915020e06120a16030f07130b17"),
       {4, 3, 2}},
      {"[1, 2, 0]",
       // a.transpose(1, 2, 0).tobytes()
       hex("000c010d020e030f0410051106120713081409150a160b17"),
       {3, 4, 2}},
      {"[2, 0, 1]",
       // a.transpose(2, 0, 1).tobytes()
       hex("0004080c10140105090d111502060a0e121603070b0f1317"),
       {4, 2, 3}},
      {"[0, 1, 2]",
       // a.tobytes()
       hex("000102030405060708090a0b0c0d0e0f1011121314151617"),
       {2, 3, 4}},
      {"\"F\"",
       // a.tobytes("F")
       hex("000c04100814010d05110915020e06120a16030f07130b17"),
       {4, 3, 2}},
      {"\"C\"",
       // a.tobytes("C")
       hex("000102030405060708090a0b0c0d0e0f1011121314151617"),
       {2, 3, 4}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.order);
    ChunkLayout seen = layout({2, 3, 4});
    const auto codec = make_codec("transpose", fmt::format(R"({{"order": {}}})", c.order), seen);
    EXPECT_EQ(decode(*codec, c.encoded, 24), ramp());
    EXPECT_EQ(seen.shape, c.shape);
  }
}

TEST(Transpose, MovesWholeElements) {
  for (std::size_t itemsize : {2u, 3u, 4u, 8u, 12u}) {
    ChunkLayout seen = layout({2, 1, 6}, static_cast<std::uint32_t>(itemsize));
    const auto codec = make_codec("transpose", R"({"order": [1, 2, 0]})", seen);
    Bytes a, encoded(12 * itemsize);
    for (std::size_t i = 0; i < 12 * itemsize; ++i) a.push_back(static_cast<std::byte>(i));
    for (std::size_t row = 0; row < 2; ++row)
      for (std::size_t column = 0; column < 6; ++column)
        std::memcpy(encoded.data() + (column * 2 + row) * itemsize,
                    a.data() + (row * 6 + column) * itemsize, itemsize);
    EXPECT_EQ(decode(*codec, encoded, a.size()), a) << itemsize;
  }
}

TEST(Transpose, WithoutDimensions) {
  ChunkLayout seen = layout({});
  const auto codec = make_codec("transpose", R"({"order": []})", seen);
  EXPECT_EQ(decode(*codec, Bytes(1, std::byte{7}), 1), Bytes(1, std::byte{7}));
}

TEST(Transpose, NeedsExactlyTheChunk) {
  ChunkLayout seen = layout({2, 3, 4});
  const auto codec = make_codec("transpose", R"({"order": [2, 1, 0]})", seen);
  EXPECT_EQ(failure([&] { decode(*codec, Bytes(23), 24); }),
            "the chunk has 23 bytes, 24 were expected");
  EXPECT_TRUE(fails(*codec, Bytes(25), 25));
  EXPECT_TRUE(fails(*codec, Bytes(24), 23));
  EXPECT_TRUE(fails(*codec, {}, 24));
}

TEST(Transpose, RefusesWhatIsNoPermutation) {
  auto of = [](const char* order) {
    ChunkLayout seen = layout({2, 3});
    return failure(
        [&] { make_codec("transpose", fmt::format(R"({{"order": {}}})", order), seen); });
  };
  EXPECT_EQ(of("[0]"), "transpose.order: expected one entry per dimension");
  EXPECT_EQ(of("[0, 1, 2]"), "transpose.order: expected one entry per dimension");
  EXPECT_EQ(of("[1, 1]"), "transpose.order: not a permutation");
  EXPECT_EQ(of("[0, 2]"), "transpose.order[1]: 2 is too large, the most is 1");
  EXPECT_EQ(of("[-1, 0]"), "transpose.order[0]: -1 is too small, the least is 0");
  EXPECT_EQ(of("[0, 1.5]"), "transpose.order[1]: expected a whole number");
  EXPECT_EQ(of("[0, \"1\"]"), "transpose.order[1]: expected a whole number");
  EXPECT_EQ(of("\"A\""), "transpose.order: expected a permutation, \"C\" or \"F\"");
  EXPECT_EQ(of("null"), "transpose.order: expected a list");
  ChunkLayout seen = layout({2});
  EXPECT_EQ(failure([&] { make_codec("transpose", "{}", seen); }),
            "transpose: the key 'order' is missing");
}

}  // namespace transpose_test
}  // namespace batchfs
