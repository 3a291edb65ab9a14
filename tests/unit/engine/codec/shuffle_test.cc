#include "engine/codec/codecs.h"

#include "tests/unit/engine/codec/damage.h"

// The vectors, in Python:
// import numpy as np; from numcodecs import Shuffle
// a = np.arange(23, dtype="u1")

namespace batchfs {
namespace shuffle_test {

TEST(Shuffle, DecodesWhatNumcodecsWrites) {
  Bytes a;
  for (int i = 0; i < 24; ++i) a.push_back(static_cast<std::byte>(i));
  // Shuffle(4).encode(np.arange(24, dtype="u1"))
  EXPECT_EQ(decode(*make_codec("shuffle", R"({"elementsize": 4})"),
                   hex("0004080c10140105090d111502060a0e121603070b0f1317"), 24),
            a);
  // Shuffle(3).encode(np.arange(24, dtype="u1"))
  EXPECT_EQ(decode(*make_codec("shuffle", R"({"elementsize": 3})"),
                   hex("000306090c0f12150104070a0d1013160205080b0e111417"), 24),
            a);
  // numcodecs' default is 4.
  // Shuffle().encode(np.arange(24, dtype="u1"))
  EXPECT_EQ(
      decode(*make_codec("shuffle"), hex("0004080c10140105090d111502060a0e121603070b0f1317"), 24),
      a);
  EXPECT_EQ(decode(*make_codec("shuffle", R"({"elementsize": 1})"), a, 24), a);
}

TEST(Shuffle, ATailThatIsNoElementStays) {
  Bytes a;
  for (int i = 0; i < 23; ++i) a.push_back(static_cast<std::byte>(i));
  // numcodecs refuses such lengths; HDF5's filter of that name copies the tail.
  EXPECT_EQ(decode(*make_codec("shuffle", R"({"elementsize": 4})"),
                   // bytes(Shuffle(4).encode(a[:20])) + a[20:].tobytes()
                   hex("0004080c100105090d1102060a0e1203070b0f13141516"), 23),
            a);
  EXPECT_EQ(decode(*make_codec("shuffle", R"({"elementsize": 100})"), a, 23), a);
}

TEST(Shuffle, RefusesTooMuchAndSizesThatCannotBe) {
  EXPECT_TRUE(fails(*make_codec("shuffle"), Bytes(9), 8));
  EXPECT_EQ(decode(*make_codec("shuffle"), {}, 8).size(), 0u);
  EXPECT_EQ(refusal("shuffle", R"({"elementsize": 0})"),
            "shuffle.elementsize: 0 is too small, the least is 1");
  EXPECT_EQ(refusal("shuffle", R"({"elementsize": 1e12})"),
            "shuffle.elementsize: 1000000000000 is too large, the most is 1048576");
  EXPECT_EQ(refusal("shuffle", R"({"elementsize": "4"})"),
            "shuffle.elementsize: expected a whole number");
}

}  // namespace shuffle_test
}  // namespace batchfs
