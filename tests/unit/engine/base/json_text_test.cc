#include "engine/base/json_text.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace batchfs {
namespace json_text_test {

TEST(JsonText, IsIndentedOrOneLine) {
  const Json json = {{"b", {1, 2}}, {"a", "ü"}};
  EXPECT_EQ(json_text(json, -1), R"({"b":[1,2],"a":"ü"})");
  EXPECT_EQ(json_text(json), "{\n  \"b\": [\n    1,\n    2\n  ],\n  \"a\": \"ü\"\n}");
}

TEST(JsonText, ReplacesWhatIsNoUtf8) {
  EXPECT_EQ(json_text(Json("latin\xe9"), -1), "\"latin\xef\xbf\xbd\"");
  EXPECT_EQ(json_text({{"\xff", 1}}, -1), "{\"\xef\xbf\xbd\":1}");
}

TEST(JsonText, EscapesWhatIsHarmfulOnATerminal) {
  const Json json = {{"a\u202eb", "\x1b[0m \x7f \u009b31m \u200b\U000e0041 \u2010é\U0001f30d"}};
  const std::string text = json_text(json, -1);
  EXPECT_EQ(
      text,
      "{\"a\\u202eb\":\"\\u001b[0m \\u007f \\u009b31m \\u200b\\udb40\\udc41 \u2010é\U0001f30d\"}");
  EXPECT_EQ(Json::parse(text), json);
}

TEST(JsonText, NamesNumbersThatJsonLacks) {
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const Json json = {{"NaN", "NaN"},
                     {"a \"b\" \\", {nan, "c\"", infinity}},
                     {"d", {{"e", -infinity}, {"f", 1.5}, {"g", nullptr}}},
                     {"h", nan}};
  EXPECT_EQ(json_text(json, -1), R"({"NaN":"NaN","a \"b\" \\":["NaN","c\"","Infinity"],)"
                                 R"("d":{"e":"-Infinity","f":1.5,"g":null},"h":"NaN"})");
  EXPECT_EQ(python_json_text(json, -1), R"({"NaN":"NaN","a \"b\" \\":[NaN,"c\"",Infinity],)"
                                        R"("d":{"e":-Infinity,"f":1.5,"g":null},"h":NaN})");
  EXPECT_EQ(json_text(with_named_numbers(json), -1), json_text(json, -1));
  EXPECT_EQ(python_json_text(nan), "NaN");
  EXPECT_EQ(json_text(nan), "\"NaN\"");
}

TEST(JsonText, WhatPythonReadsIsWrittenBack) {
  const std::string text = R"({"a":[NaN,"NaN",-Infinity,{"b":Infinity}],"NaN":"x"})";
  EXPECT_EQ(python_json_text(parse_json(text, "k"), -1), text);
}

}  // namespace json_text_test
}  // namespace batchfs
