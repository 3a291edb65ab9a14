#include "engine/codec/codecs.h"

#include "tests/unit/engine/codec/damage.h"

// The vectors, in Python, are arrays of numpy; values of whole arrays that zarr-python wrote are in
// tests/conformance/codecs_of_2026_test.py.

namespace batchfs {
namespace scale_offset_test {

template <class T>
std::vector<T> decoded(std::string_view configuration, const DataType& type,
                       const std::vector<T>& stored) {
  const auto codec = make_codec("scale_offset", configuration, type);
  return values_of<T>(decode(*codec, bytes_of(stored), stored.size() * sizeof(T)));
}

const DataType kInt8 = make_type(Kind::signed_int, 1), kInt64 = make_type(Kind::signed_int, 8),
               kUint64 = make_type(Kind::unsigned_int, 8);

TEST(ScaleOffset, FloatsRoundAfterEachStep) {
  // np.float32([7, -3]) / np.float32(0.1) + np.float32(0.3)
  EXPECT_EQ(decoded<float>(R"({"scale": 0.1, "offset": 0.3})", float32(), {7, -3}),
            (std::vector<float>{0x1.193334p+6F, -0x1.db3334p+4F}));
  EXPECT_EQ(decoded<double>(R"({"scale": 100, "offset": 273.15})", float64(), {1, 0}),
            (std::vector<double>{273.15999999999997, 273.15}));
  EXPECT_EQ(decoded<double>("{}", float64(), {1.5})[0], 1.5);
  EXPECT_EQ(decoded<double>(R"({"offset": "0x3ff0000000000000"})", float64(), {1.5})[0], 2.5);
}

TEST(ScaleOffset, IntegersDivideWithoutRemainder) {
  using Bytes8 = std::vector<std::int8_t>;
  EXPECT_EQ(decoded<std::int8_t>(R"({"scale": 3, "offset": 5})", kInt8, {6, -9, 0}),
            (Bytes8{7, 2, 5}));
  EXPECT_EQ(decoded<std::int8_t>(R"({"scale": -3})", kInt8, {6, -9}), (Bytes8{-2, 3}));
  EXPECT_EQ(failure([] {
              decoded<std::int8_t>(R"({"scale": 3})", kInt8, {6, 7});
            }),
            "the stored value 7 is not a multiple of the scale 3");
}

TEST(ScaleOffset, AResultThatDoesNotFitIsAnError) {
  constexpr const char* kWhy = "scale_offset gives a value that does not fit the data type";
  EXPECT_EQ(failure([] { decoded<std::int8_t>(R"({"offset": 100})", kInt8, {28}); }), kWhy);
  EXPECT_EQ(failure([] { decoded<std::int8_t>(R"({"scale": -1})", kInt8, {-128}); }), kWhy);
  EXPECT_EQ(failure([] { decoded<std::int64_t>(R"({"scale": -1})", kInt64, {INT64_MIN}); }), kWhy);
  EXPECT_EQ(failure([] { decoded<std::int64_t>(R"({"offset": 1})", kInt64, {INT64_MAX}); }), kWhy);
  EXPECT_EQ(failure([] { decoded<std::uint64_t>(R"({"offset": 1})", kUint64, {UINT64_MAX}); }),
            kWhy);
  EXPECT_EQ(decoded<std::uint64_t>(R"({"offset": 1})", kUint64, {UINT64_MAX - 1})[0], UINT64_MAX);
  EXPECT_EQ(decoded<std::int64_t>(R"({"offset": -1, "scale": -1})", kInt64, {INT64_MIN + 1})[0],
            INT64_MAX - 1);
}

TEST(ScaleOffset, TheFillValueOfTheNextCodecIsEncoded) {
  ChunkLayout layout{{4}, make_type(Kind::signed_int, 2), bytes_of(std::vector<std::int16_t>{10})};
  make_codec("scale_offset", R"({"scale": 3, "offset": 4})", layout);
  EXPECT_EQ(layout.fill_value, bytes_of(std::vector<std::int16_t>{18}));
  layout.fill_value = bytes_of(std::vector<std::int16_t>{30000});
  EXPECT_EQ(failure([&] { make_codec("scale_offset", R"({"scale": 3})", layout); }),
            "scale_offset: the fill value cannot be encoded: scale_offset gives a value that does "
            "not fit the data type");
  layout = {{4}, kUint64, bytes_of(std::vector<std::uint64_t>{UINT64_MAX})};
  EXPECT_THAT(
      failure([&] { make_codec("scale_offset", R"({"scale": 18446744073709551615})", layout); }),
      testing::HasSubstr("does not fit"));
}

TEST(ScaleOffset, ChunksOfAnotherSizeAreErrors) {
  const auto codec = make_codec("scale_offset", "{}", float32());
  EXPECT_EQ(failure([&] { decode(*codec, Bytes(7), 8); }),
            "the chunk has 7 bytes, 8 were expected");
  EXPECT_TRUE(fails(*codec, Bytes(12), 8));
  EXPECT_EQ(decode(*codec, {}, 8).size(), 0u);
}

TEST(ScaleOffset, RefusesWrongConfigurations) {
  EXPECT_EQ(refusal("scale_offset", R"({"scale": 0})", float32()),
            "scale_offset.scale: the scale is 0");
  EXPECT_EQ(refusal("scale_offset", R"({"scale": "-0.0"})", float32()),
            "scale_offset.scale: the scale is 0");
  EXPECT_EQ(refusal("scale_offset", R"({"scale": 0.5})", kInt8),
            "scale_offset.scale: not a whole number, as the data type needs");
  EXPECT_EQ(refusal("scale_offset", R"({"offset": 128})", kInt8),
            "scale_offset.offset: out of range for the data type");
  EXPECT_THAT(refusal("scale_offset", R"({"astype": "<i2"})", float32()),
              testing::HasSubstr("astype"));
  EXPECT_EQ(refusal("scale_offset", "{}", datetime_ns()),
            "scale_offset: scale_offset of the data type datetime64[ns] is not supported");
}

}  // namespace scale_offset_test
}  // namespace batchfs
