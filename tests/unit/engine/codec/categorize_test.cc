#include "engine/codec/codecs.h"

#include "tests/unit/engine/codec/damage.h"

namespace batchfs {
namespace categorize_test {

constexpr const char* kLabels = R"("labels": ["a", "b\u00e9", "long"])";

std::unique_ptr<Codec> codec_of(const std::string& dtype, const std::string& astype,
                                ChunkLayout layout = {{4}, {}, {}, true}) {
  const Json type = dtype;
  layout.type = parse_v2_type(JsonRef(type, ""), "");
  return make_codec("categorize",
                    fmt::format(R"({{{}, "dtype": "{}", "astype": "{}"}})", kLabels, dtype, astype),
                    layout);
}

/// UCS-4, little-endian, padded to two characters each.
Bytes two(std::vector<std::u32string> texts) {
  Bytes bytes;
  for (std::u32string text : texts) {
    text.resize(2);
    const auto part = std::as_bytes(std::span(text));
    bytes.insert(bytes.end(), part.begin(), part.end());
  }
  return bytes;
}

// numcodecs.Categorize(["a", "bé", "long"], "<U2").decode(np.array([1, 2, 3, 0, 4], "u1"))
TEST(Categorize, CodesStandForLabels) {
  const auto codec = codec_of("<U2", "|u1");
  const Bytes expected = two({U"a", U"b\u00e9", U"lo", U"", U""});
  EXPECT_EQ(decode(*codec, hex("0102030004"), 40), expected);
  EXPECT_EQ(codec->encoded_size(40), 5u);
  EXPECT_EQ(decode(*codec_of("<U2", ">i2"), hex("00010002000300008000"), 40),
            two({U"a", U"b\u00e9", U"lo", U"", U""}));
  EXPECT_EQ(decode(*codec_of(">U2", "|u1"), hex("02"), 8), hex("00000062000000e9"));
}

TEST(Categorize, RefusesWhatDoesNotFit) {
  EXPECT_TRUE(fails(*codec_of("<U2", "|u1"), Bytes(6), 40));
  EXPECT_TRUE(fails(*codec_of("<U2", "<u2"), Bytes(3), 40));
  EXPECT_THAT(failure([] { codec_of("<U2", "<f4"); }), testing::HasSubstr("not whole numbers"));
  EXPECT_THAT(refusal("categorize", R"({"labels": [], "dtype": "<U2"})"),
              testing::HasSubstr("values of the type uint8"));
  EXPECT_THAT(
      refusal("categorize", R"({"labels": [], "dtype": "<U3"})", make_type(Kind::unicode, 8)),
      testing::HasSubstr("not the data type of the array"));
}

}  // namespace categorize_test
}  // namespace batchfs
