#include "engine/codec/codecs.h"

#include "tests/unit/engine/codec/damage.h"

// a = np.arange(12, dtype="u2").reshape(2, 3, 2)

namespace batchfs {
namespace chunky_test {

ChunkLayout layout() { return {{2, 3, 2}, make_type(Kind::unsigned_int, 2), {}}; }

Bytes ramp() {
  std::vector<std::uint16_t> a(12);
  for (std::uint16_t i = 0; i < 12; ++i) a[i] = i;
  return bytes_of(a);
}

TEST(Chunky, TheFirstDimensionIsFastest) {
  ChunkLayout seen = layout();
  const auto codec = make_codec("ChunkyCodec", "{}", seen);
  // a.ravel("F").tobytes()
  EXPECT_EQ(decode(*codec, hex("000006000200080004000a00010007000300090005000b00"), 24), ramp());
  EXPECT_TRUE(seen.serialized);
  seen = layout();
  const auto big = make_codec("ChunkyCodec", R"({"endian": "big"})", seen);
  // a.astype(">u2").ravel("F").tobytes()
  EXPECT_EQ(decode(*big, hex("00000006000200080004000a00010007000300090005000b"), 24), ramp());
}

TEST(Chunky, NeedsExactlyTheChunk) {
  ChunkLayout seen = layout();
  const auto codec = make_codec("ChunkyCodec", "{}", seen);
  EXPECT_EQ(failure([&] { decode(*codec, Bytes(22), 24); }),
            "the chunk has 22 bytes, 24 were expected");
  EXPECT_TRUE(fails(*codec, Bytes(26), 26));
  EXPECT_TRUE(fails(*codec, Bytes(24), 23));
}

TEST(Chunky, RefusesWhatTiffFilesDoNotHold) {
  EXPECT_EQ(refusal("ChunkyCodec", R"({"endian": "middle"})"),
            "ChunkyCodec.endian: expected \"big\" or \"little\"");
  EXPECT_EQ(refusal("ChunkyCodec", "{}", datetime_ns()),
            "the codec 'ChunkyCodec' on values of the type datetime64[ns] is not supported");
  ChunkLayout seen{{3, 4, 4}, float32(), {}};
  make_codec("imagecodecs_floatpred", R"({"shape": [3, 4, 4], "dtype": "<f4"})", seen);
  EXPECT_EQ(failure([&] { make_codec("ChunkyCodec", "{}", seen); }),
            "a predictor of floats on pixels of several samples is not supported");
}

}  // namespace chunky_test
}  // namespace batchfs
