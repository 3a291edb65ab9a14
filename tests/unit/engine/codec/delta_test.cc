#include "engine/codec/codecs.h"

#include "tests/unit/engine/codec/damage.h"

// The vectors, in Python:
// import numpy as np; from numcodecs import Delta
// a = np.array([5, 3, 250, 0, 127, 128, 255], "u1")
// w = np.array([2**31 - 1, -2**31, 7, -7], ">i4")
// f = np.array([0.1, 0.25, 1e6, -3.5, 1e-3], "<f4")

namespace batchfs {
namespace delta_test {

TEST(Delta, SumsWrapInTheDecodedType) {
  const auto codec = make_codec("delta", R"({"dtype": "|u1"})");
  // Delta("u1").encode(a)
  // a
  EXPECT_EQ(decode(*codec, hex("05fef7067f017f"), 7), hex("0503fa007f80ff"));
}

TEST(Delta, ReadsAndWritesBigEndianNumbersOfStoredArrays) {
  ChunkLayout layout{{4}, make_type(Kind::signed_int, 4), {}};
  layout.serialized = true;
  const auto codec = make_codec("delta", R"({"dtype": ">i4", "astype": ">i4"})", layout);
  // Delta(">i4").encode(w)
  // w
  EXPECT_EQ(decode(*codec, hex("7fffffff0000000180000007fffffff2"), 16),
            hex("7fffffff8000000000000007fffffff9"));
  EXPECT_TRUE(layout.type.big_endian);
}

TEST(Delta, SumsOfSmallDifferencesAreOfTheWideType) {
  ChunkLayout layout{{100}, make_type(Kind::signed_int, 8), {}};
  const auto codec = make_codec("delta", R"({"dtype": "<i8", "astype": "|i1"})", layout);
  EXPECT_EQ(layout.type, make_type(Kind::signed_int, 1));
  EXPECT_EQ(codec->encoded_size(800), 100u);
  std::vector<std::int64_t> ramp;
  for (int i = 0; i < 12; ++i) ramp.push_back(i * 100);
  // Delta("<i8", "i1").encode(np.arange(12) * 100)
  EXPECT_EQ(decode(*codec, hex("006464646464646464646464"), 96), bytes_of(ramp));
}

TEST(Delta, FloatsAreAddedInTheirOwnPrecision) {
  const auto codec = make_codec("delta", R"({"dtype": "<f4"})");
  // Delta("<f4").encode(f)
  // Delta("<f4").decode(Delta("<f4").encode(f))
  EXPECT_EQ(decode(*codec, hex("cdcccc3d9a99193efc237449382474c962106040"), 20),
            hex("cdcccc3d0000803e00247449000060c00010833a"));
  const auto half = make_codec("delta", R"({"dtype": "<f2"})");
  // Delta("<f2").encode(f.astype("<f2")[[0, 1, 3, 4]])
  EXPECT_EQ(decode(*half, hex("662ecd3080c30143"), 8),
            // Delta("<f2").decode(Delta("<f2").encode(f.astype("<f2")[[0, 1, 3, 4]]))
            hex("662e003400c30018"));
  const auto mixed = make_codec("delta", R"({"dtype": "<f8", "astype": "<f4"})");
  // Delta("<f8", "<f4").encode(f.astype("<f8"))
  EXPECT_EQ(
      decode(*mixed, hex("cdcccc3d9a99193efc237449382474c962106040"), 40),
      // Delta("<f8", "<f4").decode(Delta("<f8", "<f4").encode(f.astype("<f8")))
      hex("000000a09999b93f000000080000d03f4000000080842e41000000ffffff0bc0000000000862503f"));
}

TEST(Delta, RefusesWhatDoesNotFit) {
  const auto codec = make_codec("delta", R"({"dtype": "<i4"})");
  EXPECT_EQ(failure([&] { decode(*codec, Bytes(7), 100); }),
            "7 bytes are not a whole number of int32 elements");
  EXPECT_EQ(failure([&] { decode(*codec, Bytes(12), 8); }),
            "the filter has 3 elements, 2 were expected");
  EXPECT_EQ(decode(*codec, {}, 8).size(), 0u);
}

TEST(Delta, RefusesTypesThatAreNoNumbers) {
  EXPECT_EQ(refusal("delta", R"({"dtype": "<U4"})"),
            "delta.dtype: filters of the data type <U4 are not supported");
  EXPECT_EQ(refusal("delta", R"({"dtype": "quux"})"),
            "delta.dtype: the data type 'quux' is not supported");
  EXPECT_EQ(refusal("delta", R"({"dtype": 4})"), "delta.dtype: expected a string");
  EXPECT_EQ(refusal("delta", R"({"dtype": "<i4", "astype": "<c8"})"),
            "delta.astype: filters of the data type complex64 are not supported");
  EXPECT_EQ(refusal("delta", "{}", datetime_ns()),
            "delta: filters of the data type datetime64[ns] are not supported");
  EXPECT_EQ(refusal("delta", R"({"dtype": ">i4"})"),
            "delta.dtype: big-endian types in filters of Zarr v3 are not supported");
}

}  // namespace delta_test
}  // namespace batchfs
