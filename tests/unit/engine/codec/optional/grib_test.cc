#include "engine/codec/codecs.h"

#include <cmath>

#include "tests/unit/engine/codec/damage.h"

namespace batchfs {
namespace grib_test {

// 12 points, 2 * i, the sixth missing. By ecCodes 2.50: codes_grib_new_from_samples(), Ni = 4,
// Nj = 3, from 2 to 0 degrees north, bitsPerValue = 8, bitmapPresent = 1, codes_set_values().
constexpr std::string_view kEdition2 =
    "47524942ffff000200000000000000c000000015010062000004000107d703170c000000020000004803000000000c"
    "0000000006ffffffffffffffffffffffffffffff000000040000000300000000ffffffff001e8480000000003000"
    "000000002dc6c0000f4240000f424000000000220400000000000000ff80000000010000000001ffffffffffffffff"
    "ffffff00000015050000000b000000000000800300000800000000080600fbf00000001007001020304060708090a0"
    "b037373737";
constexpr std::string_view kEdition1 =
    "4752494200007e01000034806280ffc0a70100000703170c0001000000000000150000000000000000000000000000"
    "0001010204013030303100000000002000ff00000400030007d000000080000000000bb803e803e800000000000000"
    "08040000fbf00000160080030000000008001020304060708090a0b037373737";

class Grib : public testing::Test {
 protected:
  void SetUp() override {
    try {
      of("t");
    } catch (const Error& error) {
      // In a build without ecCodes, or if it is not installed.
      EXPECT_EQ(error.code(), ErrorCode::not_supported);
      EXPECT_THAT(error.what(),
                  testing::AnyOf(testing::HasSubstr("built without ecCodes (BATCHFS_GRIB)"),
                                 testing::HasSubstr("needs the library libeccodes")));
      GTEST_SKIP() << error.what();
    }
  }
  static std::unique_ptr<Codec> of(const char* var, const char* dtype = "float32",
                                   Dims shape = {3, 4}) {
    ChunkLayout layout{shape, float32(), {}, true};
    return make_codec("grib", fmt::format(R"({{"var": "{}", "dtype": "{}"}})", var, dtype), layout);
  }
};

TEST_F(Grib, ValuesWithMissingOnesAsNan) {
  for (const std::string_view message : {kEdition2, kEdition1}) {
    const auto got = values_of<float>(decode(*of("t"), hex(message), 48));
    for (std::size_t i = 0; i < 12; ++i) {
      if (i == 5)
        EXPECT_TRUE(std::isnan(got[i]));
      else
        EXPECT_EQ(got[i], 2.0F * static_cast<float>(i));
    }
  }
  EXPECT_EQ(values_of<double>(decode(*of("t", "<f8"), hex(kEdition2), 96))[11], 22.0);
}

TEST_F(Grib, Places) {
  for (const std::string_view message : {kEdition2, kEdition1}) {
    EXPECT_EQ(values_of<double>(decode(*of("latitude", "float64"), hex(message), 96)),
              (std::vector<double>{2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0}));
    EXPECT_EQ(values_of<float>(decode(*of("longitude"), hex(message), 48)),
              (std::vector<float>{0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3}));
  }
}

TEST_F(Grib, RefusesWhatDoesNotFit) {
  EXPECT_TRUE(fails(*of("t", "float32", {3, 5}), hex(kEdition2), 60));
  EXPECT_TRUE(fails(*of("t", "float32", {3, 5}), hex(kEdition1), 60));
  EXPECT_TRUE(fails(*of("t"), hex(kEdition2), 47));
  for (const std::string_view message : {kEdition2, kEdition1}) {
    const Bytes whole = hex(message);
    for (std::size_t size = 0; size < whole.size(); ++size)
      EXPECT_TRUE(fails(*of("t"), std::span(whole).first(size), 48)) << size;
  }
  EXPECT_EQ(refusal("grib", "{}"), "grib: the key 'var' is missing");
  EXPECT_THAT(refusal("grib", R"({"var": "t", "dtype": "S3"})"), testing::HasSubstr("dtype"));
}

TEST_F(Grib, MemoryIsBounded) {
  const auto codec = of("t", "float32", {1000, 1000});
  EXPECT_GT(codec->encoded_bound(4'000'000), 8'000'000u);
  EXPECT_LT(codec->encoded_bound(4'000'000), 10'000'000u);
  EXPECT_LT(codec->scratch_bytes(4'000'000), 100'000'000u);
}

}  // namespace grib_test
}  // namespace batchfs
