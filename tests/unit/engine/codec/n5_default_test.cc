#include "engine/codec/codecs.h"

#include "tests/unit/engine/codec/damage.h"

namespace batchfs {
namespace n5_default_test {

constexpr const char* kCodecs =
    R"({"codecs": [{"name": "transpose", "configuration": {"order": [1, 0]}},
    {"name": "bytes", "configuration": {"endian": "big"}}]})";

std::unique_ptr<Codec> codec_of(const char* configuration = kCodecs) {
  ChunkLayout layout{{2, 3}, make_type(Kind::unsigned_int, 2), hex("0900")};
  auto codec = make_codec("n5_default", configuration, layout);
  EXPECT_TRUE(layout.serialized);
  return codec;
}

/// N5's file-system specification: mode, dimensions, their lengths; then values, the first
/// dimension fastest.
TEST(N5Default, WholeBlocks) {
  const Bytes stored =
      hex("0000"
          "0002"
          "00000002"
          "00000003"
          "000100040002000500030006");
  expect_decodes(*codec_of(), stored, hex("010002000300040005000600"));
}

TEST(N5Default, SmallerBlocksAreFilledUp) {
  EXPECT_EQ(decode(*codec_of(),
                   hex("0000"
                       "0002"
                       "00000001"
                       "00000002"
                       "00010002"),
                   12),
            hex("010002000900090009000900"));
}

TEST(N5Default, RefusesWhatIsNoBlockOfTheArray) {
  for (const char* bad :
       {"", "0000000200000002000000", "00000001000000020000000300010004",
        "0000000200000002000000040001000400020005000300060000", "000000020000000000000003",
        "00000002ffffffff000000030001", "0001000200000002000000030000000600010004"})
    EXPECT_TRUE(fails(*codec_of(), hex(bad), 12)) << bad;
  EXPECT_THAT(refusal("n5_default", R"({"codecs": ["bytes", "zstd", "zstd", "zstd", "zstd"]})"),
              testing::HasSubstr("more than a transpose"));
  EXPECT_THAT(refusal("n5_default", R"({"codecs": ["n5_default"]})"),
              testing::HasSubstr("inside of an N5 block"));
  EXPECT_THAT(refusal("n5_default", "{}"), testing::HasSubstr("'codecs' is missing"));
}

}  // namespace n5_default_test
}  // namespace batchfs
