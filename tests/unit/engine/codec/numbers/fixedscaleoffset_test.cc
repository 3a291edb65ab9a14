#include "engine/codec/codecs.h"

#include "tests/unit/engine/codec/damage.h"

// The vectors, in Python:
// import numpy as np; from numcodecs import FixedScaleOffset
// unpack = lambda stored, **options:
// FixedScaleOffset(**options).decode(np.asarray(stored).tobytes()) i2 = np.array([-32768, -1, 0, 7,
// 32767], "<i2") f2 = np.array([-1.5, 0.1, 60000, 7], "<f2"); f4 = f2.astype("<f4") / 3

namespace batchfs {
namespace fixedscaleoffset_test {

TEST(FixedScaleOffset, IntegersGoByWayOfDouble) {
  const auto to_float = make_codec(
      "fixedscaleoffset", R"({"dtype": "<f4", "astype": "<i2", "scale": 100, "offset": 273.15})");
  // i2
  // unpack(i2, scale=100, offset=273.15, dtype="<f4", astype="<i2")
  EXPECT_EQ(decode(*to_float, hex("0080ffff00000700ff7f"), 20),
            hex("b81e5ac2ec91884333938843299c88437b341644"));
  const auto to_double = make_codec(
      "fixedscaleoffset", R"({"dtype": "<f8", "astype": "<i2", "scale": 0.3, "offset": -7})");
  // i2
  // unpack(i2, scale=0.3, offset=-7, dtype="<f8", astype="<i2")
  EXPECT_EQ(
      decode(*to_double, hex("0080ffff00000700ff7f"), 40),
      hex("abaaaaaa1aabfac0abaaaaaaaaaa24c00000000000001cc056555555555530405655555505aafa40"));
  EXPECT_EQ(to_double->encoded_size(40), 10u);
}

TEST(FixedScaleOffset, ToIntegersTheFractionIsCut) {
  const auto codec = make_codec(
      "fixedscaleoffset", R"({"dtype": "<i4", "astype": "<i2", "scale": 10, "offset": 1000})");
  // i2
  // unpack(i2, scale=10, offset=1000, dtype="<i4", astype="<i2")
  EXPECT_EQ(decode(*codec, hex("0080ffff00000700ff7f"), 20),
            hex("1cf7ffffe7030000e8030000e8030000b4100000"));
}

TEST(FixedScaleOffset, FloatsKeepTheirOwnPrecision) {
  const auto single = make_codec(
      "fixedscaleoffset", R"({"dtype": "<f8", "astype": "<f4", "scale": 0.7, "offset": 0.1})");
  // f4
  // unpack(f4, scale=0.7, offset=0.1, dtype="<f8", astype="<f4")
  EXPECT_EQ(decode(*single, hex("000000bf0080083d00409c4655551540"), 32),
            hex("000000803aa8e3bf000000c0cce4c23f000000e0e1e6db400000006077770b40"));
  const auto half = make_codec("fixedscaleoffset",
                               R"({"dtype": "<f4", "astype": "<f2", "scale": 0.7, "offset": 0.1})");
  // f2
  // unpack(f2, scale=0.7, offset=0.1, dtype="<f4", astype="<f2")
  EXPECT_EQ(decode(*half, hex("00be662e537b0047"), 16), hex("00c002c000a0783e0000807f00a02141"));
}

TEST(FixedScaleOffset, ReadsBigEndianNumbersOfStoredArrays) {
  ChunkLayout layout{{5}, make_type(Kind::floating, 8), {}};
  layout.serialized = true;
  const auto codec = make_codec(
      "fixedscaleoffset", R"({"dtype": ">f8", "astype": ">i2", "scale": 4, "offset": 0})", layout);
  // i2.astype(">i2")
  // unpack(i2.astype(">i2"), scale=4, offset=0, dtype=">f8", astype=">i2")
  EXPECT_EQ(
      decode(*codec, hex("8000ffff000000077fff"), 40),
      hex("c0c0000000000000bfd000000000000000000000000000003ffc00000000000040bfffc000000000"));
}

TEST(FixedScaleOffset, RefusesConfigurationsThatCannotBe) {
  EXPECT_EQ(refusal("fixedscaleoffset", R"({"dtype": "<f4", "offset": 1})"),
            "fixedscaleoffset: the key 'scale' is missing");
  EXPECT_EQ(refusal("fixedscaleoffset", R"({"dtype": "<f4", "scale": 0, "offset": 1})"),
            "fixedscaleoffset.scale: the scale is 0");
  EXPECT_EQ(refusal("fixedscaleoffset", R"({"dtype": "<f4", "scale": "2", "offset": 1})"),
            "fixedscaleoffset.scale: expected a number");
  EXPECT_EQ(refusal("fixedscaleoffset", R"({"dtype": "|S4", "scale": 2, "offset": 1})"),
            "fixedscaleoffset.dtype: filters of the data type |S4 are not supported");
}

TEST(FixedScaleOffset, RefusesWhatDoesNotFit) {
  const auto codec = make_codec("fixedscaleoffset",
                                R"({"dtype": "<f4", "astype": "<i2", "scale": 1, "offset": 0})");
  EXPECT_TRUE(fails(*codec, Bytes(3), 100));
  EXPECT_TRUE(fails(*codec, Bytes(6), 8));
}

}  // namespace fixedscaleoffset_test
}  // namespace batchfs
