#include "engine/codec/codecs.h"

#include "tests/unit/engine/codec/damage.h"

// The vectors, in Python:
// f = np.array([[0.5, 1.5, -2.25], [1e9, np.pi, 0]], "f4")
// p = np.arange(12, dtype="f4").reshape(1, 4, 3) / 4

namespace batchfs {
namespace float_predictor_test {

std::unique_ptr<Codec> predictor(const char* configuration, ChunkLayout layout) {
  return make_codec("imagecodecs_floatpred", configuration, layout);
}

TEST(FloatPredictor, PutsTheBytesOfEachFloatTogether) {
  const auto codec = predictor(R"({"shape": [2, 3], "dtype": "<f4"})", {{2, 3}, float32(), {}});
  // imagecodecs.floatpred_encode(f), f
  EXPECT_EQ(decode(*codec, hex("3f008140c050f000000000004ef2c06edbb76ba4f128b325"), 24),
            hex("0000003f0000c03f000010c0286b6e4edb0f494000000000"));
  // np.array([[0.1, 0.2, 0.3]])
  EXPECT_EQ(decode(*predictor(R"({"shape": [1, 3], "dtype": "<f8"})", {{1, 3}, float64(), {}}),
                   hex("3f00007a100ac6009a66009a66009a66009a66009a670099"), 24),
            hex("9a9999999999b93f9a9999999999c93f333333333333d33f"));
  // np.array([[1.5, -2, 3]], "f2")
  EXPECT_EQ(decode(*predictor(R"({"shape": [1, 3], "dtype": "<f2"})",
                              {{3}, make_type(Kind::floating, 2), {}}),
                   hex("3e8282be0000"), 6),
            hex("003e00c00042"));
}

TEST(FloatPredictor, OfPixelsOfSeveralSamples) {
  // imagecodecs.floatpred_encode(p, axis=-2), p
  EXPECT_EQ(decode(*predictor(R"({"shape": [1, 4, 3], "dtype": "<f4", "axis": -2})",
                              {{1, 4, 3}, float32(), {}}),
                   hex("003e3f3f0100000001010100c040c04000a0806060504030f0e0d00000000000000000000"
                       "00000000000000000000000"),
                   48),
            hex("000000000000803e0000003f0000403f0000803f0000a03f0000c03f0000e03f00000040000010400"
                "000204000003040"));
  // imagecodecs.floatpred_encode(np.arange(6, dtype="f4").reshape(1, 6) / 4, dist=2)
  EXPECT_EQ(
      decode(*predictor(R"({"shape": [1, 6], "dtype": "<f4", "dist": 2})", {{1, 6}, float32(), {}}),
             hex("003e3f010000c14100c08060806000000000000000000000"), 24),
      hex("000000000000803e0000003f0000403f0000803f0000a03f"));
}

TEST(FloatPredictor, TheStoredBytesHaveNoOrder) {
  for (const char* endian : {R"({"endian": "big"})", R"({"endian": "little"})"}) {
    const Json predicted = {{"shape", {2, 3}}, {"dtype", "<f4"}};
    ChunkLayout layout{{2, 3}, float32(), {}};
    const auto codec = make_codec("imagecodecs_floatpred", predicted.dump(), layout);
    EXPECT_EQ(decode(*make_codec("bytes", endian, layout), hex("0102030405060708"), 8),
              hex("0102030405060708"));
  }
  ChunkLayout stored{{1, 3}, make_type(Kind::floating, 2), {}};
  stored.serialized = true;
  EXPECT_EQ(
      decode(*make_codec("imagecodecs_floatpred", R"({"shape": [1, 3], "dtype": ">f2"})", stored),
             hex("3e8282be0000"), 6),
      hex("3e00c0004200"));
}

TEST(FloatPredictor, RefusesWhatDoesNotFit) {
  const ChunkLayout layout{{2, 3}, float32(), {}};
  const auto codec = predictor(R"({"shape": [2, 3], "dtype": "<f4"})", layout);
  EXPECT_EQ(failure([&] { decode(*codec, Bytes(20), 24); }),
            "the chunk has 20 bytes, 24 were expected");
  EXPECT_TRUE(fails(*codec, Bytes(36), 24));
  auto refused = [&](const char* configuration) {
    return failure([&] { predictor(configuration, layout); });
  };
  EXPECT_EQ(refused("{}"), "imagecodecs_floatpred: the key 'dtype' is missing");
  EXPECT_EQ(refused(R"({"shape": [2, 3], "dtype": "<f8"})"),
            "imagecodecs_floatpred.dtype: not the chunk's type, float32");
  EXPECT_EQ(refused(R"({"shape": [2, 2], "dtype": "<f4"})"),
            "imagecodecs_floatpred.shape: the shape does not have as many elements as a chunk");
  EXPECT_EQ(refused(R"({"shape": [1, 2, 3], "dtype": "<f4", "axis": 0})"),
            "imagecodecs_floatpred.axis: expected one of the last two dimensions");
  EXPECT_EQ(refused(R"({"shape": [2, 3], "dtype": "<f4", "dist": 4})"),
            "imagecodecs_floatpred.dist: longer than a row");
}

}  // namespace float_predictor_test
}  // namespace batchfs
