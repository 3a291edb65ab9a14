#include "engine/codec/codecs.h"

#include "tests/unit/engine/codec/damage.h"

// The vector, in Python, of a = (np.arange(300) % 7).astype("u1") in a file of h5py with
// compression="lzf" and chunks=(300,): dataset.id.read_direct_chunk((0,))[1].hex()

namespace batchfs {
namespace lzf_test {

constexpr const char* kVector = "070001020304050600e0ff06e11109010405";

TEST(Lzf, DecodesWhatH5pyWrites) {
  Bytes expected;
  for (int i = 0; i < 300; ++i) expected.push_back(static_cast<std::byte>(i % 7));
  expect_decodes(*make_codec("imagecodecs_lzf"), hex(kVector), expected);
  expect_decodes(*make_codec("imagecodecs_lzf", R"({"header": false})"), hex(kVector), expected);
}

TEST(Lzf, DamageEndsInAnError) {
  const auto codec = make_codec("imagecodecs_lzf");
  EXPECT_TRUE(fails(*codec, hex("2000"), 8));      // a match before the beginning
  EXPECT_TRUE(fails(*codec, hex("0500"), 8));      // literals that are not there
  EXPECT_TRUE(fails(*codec, hex("00002000"), 2));  // more than the chunk holds
  EXPECT_TRUE(fails(*codec, hex("0000e0"), 8));    // a length that is not there
  EXPECT_EQ(failure([&] { decode(*codec, hex("5a5601000400080000"), 8); }),
            "LZF data with the header of the lzf command");
}

}  // namespace lzf_test
}  // namespace batchfs
