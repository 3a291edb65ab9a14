#include "engine/codec/codecs.h"

#include "tests/unit/engine/codec/damage.h"

namespace batchfs {
namespace byte_runs_test {

TEST(ByteRuns, DecodesTheExampleOfTheSpecification) {
  // TIFF 6.0, section 9, and imagecodecs.packbits_encode() of it.
  const Bytes expected = hex("aaaaaa80002aaaaaaaaa80002a22aaaaaaaaaaaaaaaaaaaa");
  const auto codec = make_codec("imagecodecs_packbits");
  expect_decodes(*codec, hex("feaa0280002afdaa0380002a22f7aa"), expected);
  EXPECT_EQ(decode(*codec, hex("8080feaa80"), 3), hex("aaaaaa"));
}

TEST(ByteRuns, DamageEndsInAnError) {
  const auto codec = make_codec("imagecodecs_packbits");
  EXPECT_EQ(failure([&] { decode(*codec, hex("0261"), 8); }), "the runs of bytes are truncated");
  EXPECT_TRUE(fails(*codec, hex("ff"), 8));
  EXPECT_EQ(failure([&] { decode(*codec, hex("fe61"), 2); }),
            "the runs of bytes decode to more than was expected");
  EXPECT_TRUE(fails(*codec, hex("02616263"), 2));
}

}  // namespace byte_runs_test
}  // namespace batchfs
