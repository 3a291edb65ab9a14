#include <cmath>

#include "engine/codec/codecs.h"

#include "tests/unit/engine/codec/damage.h"

// Values of whole arrays that zarr-python wrote are in tests/conformance/codecs_of_2026_test.py.

namespace batchfs {
namespace cast_value_test {

template <class To, class From>
std::vector<To> decoded(std::string_view configuration, const DataType& type,
                        const std::vector<From>& stored) {
  const auto codec = make_codec("cast_value", configuration, type);
  return values_of<To>(decode(*codec, bytes_of(stored), stored.size() * sizeof(To)));
}

TEST(CastValue, NumbersKeepTheirValues) {
  EXPECT_EQ((decoded<double, std::int16_t>(R"({"data_type": "int16"})", float64(), {1, -300})),
            (std::vector<double>{1, -300}));
  EXPECT_EQ((decoded<std::uint8_t, double>(R"({"data_type": "float64"})",
                                           make_type(Kind::unsigned_int, 1), {2.5, 255})),
            (std::vector<std::uint8_t>{2, 255}));
}

TEST(CastValue, TheRulesAreThoseConfigured) {
  const DataType byte = make_type(Kind::unsigned_int, 1);
  const std::vector<std::int16_t> wide{300, -1};
  EXPECT_EQ(
      (decoded<std::uint8_t>(R"({"data_type": "int16", "out_of_range": "clamp"})", byte, wide)),
      (std::vector<std::uint8_t>{255, 0}));
  EXPECT_EQ(
      (decoded<std::uint8_t>(R"({"data_type": "int16", "out_of_range": "wrap"})", byte, wide)),
      (std::vector<std::uint8_t>{44, 255}));
  for (const char* mode : {R"({"data_type": "int16"})", R"({"data_type": "int16",
                            "out_of_range": "error"})",
                           R"({"data_type": "int16",
                            "out_of_range": null, "scalar_map": null, "rounding": null})"})
    EXPECT_EQ(failure([&] { decoded<std::uint8_t>(mode, byte, wide); }),
              "the value 300 does not fit uint8");
  EXPECT_EQ((decoded<std::uint8_t, double>(
                R"({"data_type": "float64", "rounding": "towards-positive"})", byte, {2.1})),
            std::vector<std::uint8_t>{3});
  EXPECT_EQ(failure([&] {
              decoded<std::uint8_t, double>(R"({"data_type": "float64", "out_of_range": "clamp"})",
                                            byte, {NAN});
            }),
            "the value nan does not fit uint8");
}

TEST(CastValue, MappedNumbersTakePrecedence) {
  const std::vector<double> got = decoded<double, std::int16_t>(
      R"({"data_type": "int16", "scalar_map": {"decode": [[-32768, "NaN"], [5, "+Infinity"],
          [5, 7], [6, "0x3ff8000000000000"]]}})",
      float64(), {-32768, 5, 6, 8});
  EXPECT_TRUE(std::isnan(got[0]));
  EXPECT_EQ(slice(bytes_of(got), 8, 32), bytes_of(std::vector<double>{INFINITY, 1.5, 8}));
  EXPECT_EQ((decoded<std::int8_t, float>(
                R"({"data_type": "float32", "scalar_map": {"decode": [["NaN", -1], [0.1, 1],
                    [1e30, 2]]}})",
                make_type(Kind::signed_int, 1), {NAN, 0.1F, 1e30F, 3})),
            (std::vector<std::int8_t>{-1, 1, 2, 3}));
}

TEST(CastValue, TheFillValueOfTheNextCodecIsCast) {
  ChunkLayout layout{{4}, float64(), bytes_of(std::vector<double>{NAN})};
  make_codec("cast_value", R"({"data_type": "int16", "scalar_map": {"encode": [["NaN", -9]]}})",
             layout);
  EXPECT_EQ(layout.fill_value, bytes_of(std::vector<std::int16_t>{-9}));
  EXPECT_EQ(layout.type, make_type(Kind::signed_int, 2));
  layout = {{4}, float64(), bytes_of(std::vector<double>{NAN})};
  EXPECT_EQ(failure([&] { make_codec("cast_value", R"({"data_type": "int16"})", layout); }),
            "cast_value: the fill value cannot be cast: the value nan does not fit int16");
}

TEST(CastValue, SmallNumbersAreCastOfTheirTypeInMemory) {
  ChunkLayout layout{{2}, float64(), bytes_of(std::vector<double>{0.1})};
  const auto codec = make_codec("cast_value", R"({"data_type": "bfloat16"})", layout);
  EXPECT_EQ(layout.type, float32());
  EXPECT_EQ(layout.stored, find_small_number("bfloat16"));
  EXPECT_EQ(layout.fill_value, bytes_of(std::vector<float>{0.10009765625F}));
  EXPECT_EQ(decode(*codec, bytes_of(std::vector<float>{1.5}), 8),
            bytes_of(std::vector<double>{1.5}));
  EXPECT_EQ(failure([&] { make_codec("cast_value", R"({"data_type": "int8"})", layout); }),
            "cast_value: casts of the data type bfloat16 are not supported");
}

TEST(CastValue, ChunksOfAnotherSizeAreErrors) {
  const auto codec = make_codec("cast_value", R"({"data_type": "int16"})", float32());
  EXPECT_EQ(codec->encoded_size(400), 200u);
  EXPECT_EQ(failure([&] { decode(*codec, Bytes(3), 8); }), "3 bytes of int16 do not fit the chunk");
  EXPECT_TRUE(fails(*codec, Bytes(6), 8));
  EXPECT_EQ(decode(*codec, {}, 8).size(), 0u);
}

TEST(CastValue, RefusesWrongConfigurations) {
  auto refused = [](const char* configuration) {
    return refusal("cast_value", configuration, float32());
  };
  EXPECT_EQ(refused("{}"), "cast_value: the key 'data_type' is missing");
  EXPECT_EQ(refused(R"({"data_type": "bool"})"),
            "cast_value.data_type: casts of the data type bool are not supported");
  EXPECT_EQ(refusal("cast_value", R"({"data_type": "int8"})", datetime_ns()),
            "cast_value: casts of the data type datetime64[ns] are not supported");
  EXPECT_EQ(refused(R"({"data_type": "int8", "rounding": "nearest"})"),
            "cast_value.rounding: 'nearest' is not known, did you mean 'nearest-even'?");
  EXPECT_EQ(refused(R"({"data_type": "int8", "rounding": "up"})"),
            "cast_value.rounding: 'up' is not known; there are nearest-even, towards-zero, "
            "towards-positive, towards-negative, nearest-away");
  EXPECT_EQ(refused(R"({"data_type": "float16", "out_of_range": "wrap"})"),
            "cast_value.out_of_range: \"wrap\" is for integers only, the stored type is float16");
  EXPECT_EQ(refused(R"({"data_type": "int8", "scalar_map": {"decode": [[128, 1]]}})"),
            "cast_value.scalar_map.decode[0][0]: out of range for the data type");
  EXPECT_EQ(refused(R"({"data_type": "int8", "scalar_map": {"encode": [["x", 1]]}})"),
            "cast_value.scalar_map.encode[0][0]: 'x' is not a number");
  EXPECT_EQ(refused(R"({"data_type": "int8", "scalar_map": {"encode": [[1]]}})"),
            "cast_value.scalar_map.encode[0]: expected [input, output]");
  EXPECT_THAT(refused(R"({"data_type": "int8", "scalar_map": {"both": []}})"),
              testing::HasSubstr("both"));
  EXPECT_THAT(refused(R"({"data_type": "int8", "target": 1})"), testing::HasSubstr("target"));
  std::string many = "[[1, 1]";
  for (int i = 0; i < 256; ++i) many += ", [1, 1]";
  EXPECT_EQ(refused((R"({"data_type": "int8", "scalar_map": {"decode": )" + many + "]}}").c_str()),
            "cast_value.scalar_map.decode: scalar maps of more than 256 numbers are not supported");
}

}  // namespace cast_value_test
}  // namespace batchfs
