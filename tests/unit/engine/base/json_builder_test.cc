#include "engine/base/json_builder.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "engine/base/limits.h"

namespace batchfs {
namespace json_builder_test {

BuiltJson build(const std::string& text) {
  return build_json(text, check_json_limits(text, kMaxJsonMemory, "k"));
}

TEST(JsonBuilder, BuildsWhatTheLibraryBuilds) {
  for (const char* text :
       {"null", "true", "-3", "18446744073709551615", "1.5e3", "\"x\\u00e9\"", "[]", "{}",
        R"({"z": 1, "a": [1, 2.5, "s", null, false, {"b": {}}], "m": {"k": [[]]}})"})
    EXPECT_EQ(build(text).json, Json::parse(text)) << text;
  EXPECT_EQ(build(R"({"z": 1, "a": 2})").json.dump(), R"({"z":1,"a":2})");
}

TEST(JsonBuilder, MakesNumbersOfTheStringsThatStandForThem) {
  const std::string text = R"({"NaN": "NaN", "a": ["NaN", "Infinity", {"k": "-Infinity"}, "NaN"]})";
  const Json json = build_json(text, check_json_limits(text, kMaxJsonMemory, "k"), {3, 4, 6}).json;
  EXPECT_EQ(json["NaN"], "NaN");
  EXPECT_TRUE(std::isnan(json["a"][0].get<double>()));
  EXPECT_EQ(json["a"][1], std::numeric_limits<double>::infinity());
  EXPECT_EQ(json["a"][2]["k"], -std::numeric_limits<double>::infinity());
  EXPECT_EQ(json["a"][3], "NaN");
}

TEST(JsonBuilder, ThrowsWhatTheLibraryThrows) {
  for (const char* text :
       {"", "[", "{\"a\"}", "[1,]", "nul", "[,]", "{\"a\":1,}", "1 2", "]", "\"\x01\""}) {
    EXPECT_THROW(build(text), Json::parse_error) << text;
    std::size_t at = 0;
    try {
      [[maybe_unused]] const Json parsed = Json::parse(text);
    } catch (const Json::parse_error& error) {
      at = error.byte;
    }
    try {
      build(text);
    } catch (const Json::parse_error& error) {
      EXPECT_EQ(error.byte, at) << text;
    }
  }
  EXPECT_THROW(build("1e999"), Json::out_of_range);
}

TEST(JsonBuilder, OfEqualKeysTheLastValueCountsAtTheFirstPlace) {
  EXPECT_EQ(build(R"({"a": 1, "b": 2, "a": {"c": 3}})").json.dump(), R"({"a":{"c":3},"b":2})");
  EXPECT_EQ(build(R"({"a": 1, "b": 2, "a": 3})").duplicate, "a");
  EXPECT_EQ(build(R"({"a": {"b": 1}, "b": 2})").duplicate, std::nullopt);
  std::string many = "{";
  for (int i = 0; i < 100; ++i)
    many += "\"k" + std::to_string(i % 50) + "\":" + std::to_string(i) + ",";
  many.back() = '}';
  const BuiltJson built = build(many);
  EXPECT_EQ(built.json.size(), 50u);
  EXPECT_EQ(built.json.begin().key(), "k0");
  EXPECT_EQ(built.json["k0"], 50);
  EXPECT_EQ(built.json["k49"], 99);
  EXPECT_EQ(built.duplicate, "k0");
}

TEST(JsonBuilder, NothingHasRoomToSpare) {
  const BuiltJson built = build(R"({"list": [1, 2, 3, 4, 5], "object": {"a": 1, "b": 2, "c": 3}})");
  EXPECT_EQ(built.json["list"].get_ref<const Json::array_t&>().capacity(), 5u);
  EXPECT_EQ(built.json["object"].get_ref<const Json::object_t&>().capacity(), 3u);
}

}  // namespace json_builder_test
}  // namespace batchfs
