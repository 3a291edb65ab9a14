#include "engine/codec/codecs.h"

#include "tests/unit/engine/codec/damage.h"

// The vectors, in Python:
// from numcodecs.zfpy import ZFPY; f = (np.arange(12).reshape(3, 4) * 1.5).astype("f4")

namespace batchfs {
namespace zfpy_test {

constexpr std::string_view kAccuracy =  // ZFPY(mode=4, tolerance=0.01).encode(f).hex()
    "7a667005360000200000c0ca0971488c045400130488000000000000000000000000000000000000";
constexpr std::string_view kRate =  // ZFPY(mode=2, rate=8).encode(f).hex()
    "7a667005360000200000f0070971488c04540013048800000000000000000000";

Bytes values() {
  std::vector<float> f;
  for (int i = 0; i < 12; ++i) f.push_back(static_cast<float>(i) * 1.5F);
  return bytes_of(f);
}

class Zfpy : public testing::Test {
 protected:
  void SetUp() override {
    try {
      codec = of({3, 4}, float32());
    } catch (const Error& error) {
      // In a build without zfp, or if it is not installed.
      EXPECT_EQ(error.code(), ErrorCode::not_supported);
      EXPECT_THAT(error.what(),
                  testing::AnyOf(testing::HasSubstr("built without zfp (BATCHFS_ZFP)"),
                                 testing::HasSubstr("needs the library libzfp")));
      GTEST_SKIP() << error.what();
    }
  }
  static std::unique_ptr<Codec> of(Dims shape, DataType type) {
    ChunkLayout layout{shape, std::move(type), {}};
    auto made = make_codec("zfpy", "{}", layout);
    EXPECT_TRUE(layout.serialized);
    return made;
  }
  std::unique_ptr<Codec> codec;
};

TEST_F(Zfpy, DecodesWhatZfpyWrote) {
  expect_decodes(*codec, hex(kAccuracy), values());  // damage results in other values: no checksum
  expect_decodes(*codec, hex(kRate), values());
  // ZFPY(mode=3, precision=32).encode((np.arange(5) * 7).astype("<i4")), which loses some
  EXPECT_EQ(decode(*of({5}, make_type(Kind::signed_int, 4)),
                   hex("7a667005400000000000f081000000d825020000b0280000"), 20),
            hex("ffffffff070000000d000000150000001c000000"));
}

TEST_F(Zfpy, TheHeaderMustBeOfTheChunk) {
  EXPECT_TRUE(fails(*of({4, 3}, float32()), hex(kRate), 48));
  EXPECT_TRUE(fails(*of({3, 5}, float32()), hex(kRate), 60));
  EXPECT_TRUE(fails(*of({3, 4}, float64()), hex(kRate), 96));
  EXPECT_TRUE(fails(*of({12}, float32()), hex(kRate), 48));
  EXPECT_EQ(failure([] { of({4}, make_type(Kind::signed_int, 2)); }),
            "the codec 'zfpy' on values of the type int16 is not supported");
}

TEST_F(Zfpy, NothingHasNoHeader) {
  Bytes out(48);
  EXPECT_EQ(failure([&] { codec->decode({}, out); }), "the zfp data have no header");
}

TEST_F(Zfpy, MemoryIsBounded) {
  EXPECT_LE(codec->encoded_bound(48), 4096u + 2 * 16 * 4 + 2 * 48 + 64);
  EXPECT_GE(codec->scratch_bytes(48), codec->encoded_bound(48));
  // Shapes whose blocks would not fit in 64 bits.
  EXPECT_GE(of({1, 1, 1, INT64_C(1) << 58}, float32())->encoded_bound(UINT64_C(1) << 60),
            UINT64_C(1) << 59);
}

}  // namespace zfpy_test
}  // namespace batchfs
