#include "engine/base/json_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "engine/base/limits.h"

namespace batchfs {
namespace json_limits_test {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint64_t kPlenty = 1 << 30;

JsonShape shape(const std::string& text) { return check_json_limits(text, kPlenty, "k"); }

std::string failure(const std::string& text, std::uint64_t memory = kPlenty) {
  try {
    check_json_limits(text, memory, "k");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(JsonLimits, CountTheValuesOfEachContainer) {
  EXPECT_THAT(shape(R"({"a": [1, 2, {"b": []}], "c": "x,y[", "d": {}})").sizes,
              ElementsAre(3u, 3u, 1u, 0u, 0u));
  EXPECT_THAT(shape("[[], [[]], null, -1.5]").sizes, ElementsAre(4u, 0u, 1u, 0u));
  EXPECT_THAT(shape(R"(["\"", "\\", "]"])").sizes, ElementsAre(3u));
  EXPECT_THAT(shape("3").sizes, ElementsAre());
}

TEST(JsonLimits, TakeTextsThatAreNotValid) {
  for (const char* text :
       {"", "]", "}}", "[", "\"", "\"\\", "[,,]", "{:}", "{\"a\"", ":", ",", "[1 2]", "nul"})
    EXPECT_EQ(failure(text), "no error") << text;
  EXPECT_EQ(failure(std::string("[\0]", 3)), "no error");
}

TEST(JsonLimits, RefuseDepthStringsNumbersAndKeys) {
  const auto nested = [](int depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(failure(nested(kMaxJsonDepth)), "no error");
  EXPECT_EQ(failure(nested(kMaxJsonDepth + 1)), "the JSON is nested deeper than 64 levels (k)");
  EXPECT_EQ(failure("\"" + std::string(kMaxJsonString, 'x') + "\""), "no error");
  EXPECT_THAT(failure("\"" + std::string(kMaxJsonString + 1, 'x') + "\""),
              HasSubstr("a string of the JSON is longer than 16"));
  EXPECT_EQ(failure(std::string(kMaxJsonNumber, '1')), "no error");
  EXPECT_THAT(failure("[" + std::string(kMaxJsonNumber + 1, '1')),
              HasSubstr("more than 1024 characters"));
  std::string keys = "{";
  for (std::uint32_t i = 0; i <= kMaxJsonKeys; ++i) keys += "\"\":0,";
  EXPECT_THAT(failure(keys), HasSubstr("more than 4000000 keys"));
}

TEST(JsonLimits, RefuseMoreMemoryThanIsGiven) {
  std::string text = "[0";
  for (int i = 0; i < 100'000; ++i) text += ",0";
  EXPECT_THAT(failure(text, 1 << 20), HasSubstr("takes more than 1"));
  EXPECT_EQ(failure(text, 4 << 20), "no error");
}

TEST(JsonLimits, TheMemoryIsAtLeastThatOfTheParsedValue) {
  for (const char* text :
       {R"({"a": [1, 2, {"b": []}], "c": "a string of more than fifteen bytes", "d": {}})",
        R"(["x", "y", ["z"], {"a key of more than fifteen bytes": "v"}])", "[[[[[]]]]]",
        "[NaN, -Infinity]"})
    EXPECT_GE(shape(text).memory, json_memory(parse_json(text, "k"))) << text;
}

}  // namespace json_limits_test
}  // namespace batchfs
