#include "engine/codec/codecs.h"

#include "tests/unit/engine/codec/damage.h"

// The vectors, in Python:
// import numpy as np; from numcodecs import PackBits
// b = np.arange(19) % 3 == 0

namespace batchfs {
namespace packbits_test {

Bytes booleans(int count) {
  Bytes b;
  for (int i = 0; i < count; ++i) b.push_back(std::byte{i % 3 == 0});
  return b;
}

TEST(PackBits, DecodesWhatNumcodecsWrites) {
  const auto codec = make_codec("packbits", "{}", make_type(Kind::boolean, 1));
  // PackBits().encode(b)
  expect_decodes(*codec, hex("05924920"), booleans(19));
  // PackBits().encode(b[:16])
  expect_decodes(*codec, hex("009249"), booleans(16));
  // PackBits().encode(b[:1])
  expect_decodes(*codec, hex("0780"), booleans(1));
  EXPECT_EQ(codec->encoded_size(19), 4u);
  EXPECT_EQ(codec->encoded_size(16), 3u);
}

TEST(PackBits, RefusesPaddingThatCannotBe) {
  const auto codec = make_codec("packbits", "{}", make_type(Kind::boolean, 1));
  EXPECT_TRUE(fails(*codec, {}, 8));
  EXPECT_TRUE(fails(*codec, hex("08ff"), 8));
  EXPECT_TRUE(fails(*codec, hex("ffff"), 8));
  EXPECT_TRUE(fails(*codec, hex("01"), 8));
  EXPECT_EQ(decode(*codec, hex("00"), 8).size(), 0u);
}

TEST(PackBits, RefusesOtherTypesAndTheOptionsOfItsNamesake) {
  EXPECT_EQ(refusal("packbits", "{}", float32()),
            "packbits on values that are not booleans is not supported");
  EXPECT_EQ(
      refusal("packbits", R"({"padding_encoding": "first_byte"})", make_type(Kind::boolean, 1)),
      "packbits.padding_encoding: this option of packbits is not supported");
}

}  // namespace packbits_test
}  // namespace batchfs
