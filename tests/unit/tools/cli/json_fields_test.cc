#include "tools/cli/json_fields.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace json_fields_test {

const Json kAll = Json::parse(
    R"({"n": 2.5, "big": 1e300, "low": -3, "text": "a", "object": {"x": 1}, "list": [1, 2], "none": null})");

TEST(JsonFields, AreReadByType) {
  EXPECT_EQ(number_field(kAll, "n"), 2.5);
  EXPECT_EQ(count_field(kAll, "n"), 2u);
  EXPECT_EQ(integer_field(kAll, "low"), -3);
  EXPECT_EQ(text_field(kAll, "text"), "a");
  EXPECT_EQ(object_field(kAll, "object").size(), 1u);
  EXPECT_EQ(list_field(kAll, "list").size(), 2u);
}

TEST(JsonFields, WhatIsOutOfRangeIsZero) {
  EXPECT_EQ(count_field(kAll, "low"), 0u);
  EXPECT_EQ(count_field(kAll, "big"), 0u);
  EXPECT_EQ(integer_field(kAll, "big"), 0);
}

TEST(JsonFields, WhatIsMissingOrOfAnotherTypeIsEmpty) {
  for (const char* key : {"absent", "none", "object"}) {
    EXPECT_EQ(number_field(kAll, key), 0) << key;
    EXPECT_EQ(count_field(kAll, key), 0u) << key;
    EXPECT_EQ(integer_field(kAll, key), 0) << key;
    EXPECT_EQ(text_field(kAll, key), "") << key;
    EXPECT_TRUE(list_field(kAll, key).empty()) << key;
  }
  EXPECT_TRUE(object_field(kAll, "list").empty());
  EXPECT_TRUE(object_field(Json::array({1}), "x").empty());
  EXPECT_EQ(number_field(Json("text"), "x"), 0);
}

}  // namespace json_fields_test
}  // namespace batchfs
