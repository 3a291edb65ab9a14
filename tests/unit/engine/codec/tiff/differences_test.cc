#include "engine/codec/codecs.h"

#include "tests/unit/engine/codec/damage.h"

// The vectors, in Python:
// d = np.array([[5, 3, 60000], [7, 7, 9]], "u2")
// f = np.array([[0.5, 1.5, -2.25], [1e9, np.pi, 0]], "f4")

namespace batchfs {
namespace differences_test {

ChunkLayout layout(DataType type) { return {{2, 3}, std::move(type), {}}; }

const DataType kUint16 = make_type(Kind::unsigned_int, 2);

TEST(Differences, SumsOfARowWrap) {
  for (const char* name : {"HorizontalDeltaCodec", "imagecodecs_delta"}) {
    ChunkLayout seen = layout(kUint16);
    const auto codec = make_codec(name, "{}", seen);
    // imagecodecs.delta_encode(d), d
    EXPECT_EQ(decode(*codec, hex("0500feff5dea070000000200"), 12), hex("0500030060ea070007000900"));
    EXPECT_EQ(seen.type, kUint16);
  }
}

TEST(Differences, OfFloatsAreOfTheirBits) {
  ChunkLayout seen = layout(float32());
  const auto codec = make_codec("HorizontalDeltaCodec", "{}", seen);
  // imagecodecs.delta_encode(f), f
  EXPECT_EQ(decode(*codec, hex("0000003f0000c00000005080286b6e4eb3a4daf125f0b6bf"), 24),
            hex("0000003f0000c03f000010c0286b6e4edb0f494000000000"));
}

TEST(Differences, AlongAnotherAxis) {
  ChunkLayout seen = layout(kUint16);
  for (const char* configuration :
       {R"({"axis": 0})", R"({"axis": -2, "shape": [2, 3], "dtype": "<u2", "dist": 1})"})
    // imagecodecs.delta_encode(d, axis=0), d
    EXPECT_EQ(decode(*make_codec("imagecodecs_delta", configuration, seen),
                     hex("0500030060ea02000400a915"), 12),
              hex("0500030060ea070007000900"));
}

TEST(Differences, AsAFilterOfFormat2) {
  ChunkLayout seen = layout(kUint16);
  seen.serialized = true;
  // imagecodecs.delta_encode(bytes([1, 3, 2, 250])): bytes where no type is configured
  EXPECT_EQ(
      decode(*make_codec("imagecodecs_delta", "{}", seen), hex("0102fff80000000000000000"), 12),
      hex("010302fafafafafafafafafa"));
  // imagecodecs.delta_encode(d.astype(">u2")), d.astype(">u2")
  EXPECT_EQ(decode(*make_codec("imagecodecs_delta", R"({"dtype": ">u2", "shape": [2, 3]})", seen),
                   hex("0005fffeea5d000700000002"), 12),
            hex("00050003ea60000700070009"));
}

TEST(Differences, AScalarHasNone) {
  ChunkLayout seen{{}, kUint16, {}};
  EXPECT_EQ(decode(*make_codec("HorizontalDeltaCodec", "{}", seen), hex("0102"), 2), hex("0102"));
  EXPECT_EQ(decode(*make_codec("imagecodecs_delta", "{}", seen), hex("0102"), 2), hex("0102"));
}

TEST(Differences, RefusesWhatDoesNotFit) {
  ChunkLayout seen = layout(kUint16);
  const auto codec = make_codec("HorizontalDeltaCodec", "{}", seen);
  EXPECT_EQ(failure([&] { decode(*codec, Bytes(10), 12); }),
            "the chunk has 10 bytes, 12 were expected");
  EXPECT_TRUE(fails(*codec, Bytes(18), 12));
  auto refused = [&](const char* configuration) {
    return failure([&] { make_codec("imagecodecs_delta", configuration, seen); });
  };
  EXPECT_EQ(refused(R"({"dist": 2})"),
            "imagecodecs_delta.dist: distances other than 1 are not supported");
  EXPECT_EQ(refused(R"({"shape": [7]})"),
            "imagecodecs_delta.shape: the shape does not have as many elements as a chunk");
  EXPECT_EQ(refused(R"({"axis": 2})"), "imagecodecs_delta.axis: 2 is too large, the most is 1");
  EXPECT_THAT(refused(R"({"shape": [3037000500, 3037000500]})"), testing::HasSubstr("imagecodecs"));
  EXPECT_EQ(refusal("HorizontalDeltaCodec", "{}", datetime_ns()),
            "HorizontalDeltaCodec: filters of the data type datetime64[ns] are not supported");
}

}  // namespace differences_test
}  // namespace batchfs
