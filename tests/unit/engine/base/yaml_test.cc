#include "engine/base/yaml.h"

#include <chrono>

#include <gmock/gmock.h>

#include "engine/base/json.h"

namespace batchfs {
namespace yaml_test {

using testing::HasSubstr;

std::string json(const std::string& yaml) { return json_of_yaml(yaml, "v.yaml"); }

std::string refusal(const std::string& yaml) {
  try {
    json(yaml);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_EQ(error.where(), "v.yaml");
    return error.why();
  }
  ADD_FAILURE() << "taken: " << yaml.substr(0, 100);
  return {};
}

TEST(Yaml, BlocksAndFlowsAreObjectsAndLists) {
  EXPECT_EQ(
      json("# yaml-language-server: $schema=view.schema.json\n"
           "---\n"
           "name: train\n"
           "variables: [t2m, q]\n"
           "window:\n"
           "  time: 1   # one step\n"
           "  latitude: {size: 48, wrap: false}\n"
           "select:\n"
           "  level:\n"
           "  - 500\n"
           "  - 850\n"
           "empty: {}\n"
           "none: []\n"
           "nothing:\n"
           "...\n"),
      R"({"name":"train","variables":["t2m","q"],"window":{"time":1,"latitude":{"size":48,"wrap":false}},)"
      R"("select":{"level":[500,850]},"empty":{},"none":[],"nothing":null})");
  EXPECT_EQ(json(""), "null");
  EXPECT_EQ(json("# nothing\n"), "null");
  EXPECT_EQ(json("{\"a\": [1, {\"b\": null}]}"), R"({"a":[1,{"b":null}]})");
  EXPECT_EQ(json("? a\n: 1\n"), R"({"a":1})");
}

// YAML 1.2.2, section 10.3.2 (core schema), and its examples.
TEST(Yaml, PlainScalarsAreThoseOfTheCoreSchema) {
  const std::pair<const char*, const char*> cases[] = {
      {"null", "null"},
      {"Null", "null"},
      {"~", "null"},
      {"nULL", "\"nULL\""},
      {"true", "true"},
      {"True", "true"},
      {"FALSE", "false"},
      {"tRUE", "\"tRUE\""},
      {"yes", "\"yes\""},
      {"no", "\"no\""},
      {"on", "\"on\""},
      {"off", "\"off\""},
      {"y", "\"y\""},
      {"0", "0"},
      {"-19", "-19"},
      {"+12", "12"},
      {"007", "7"},
      {"0o7", "7"},
      {"0o8", "\"0o8\""},
      {"0x3A", "58"},
      {"0xffffffffffffffff", "18446744073709551615"},
      {"0x1ffffffffffffffff", "\"0x1ffffffffffffffff\""},
      {"1_000", "\"1_000\""},
      {"0.", "0.0"},
      {"-0.0", "-0.0"},
      {".5", "0.5"},
      {"-.5", "-0.5"},
      {"+12e03", "12e03"},
      {"12e-3", "12e-3"},
      {"-2E+05", "-2e05"},
      {"1e", "\"1e\""},
      {"e5", "\"e5\""},
      {".", "\".\""},
      {"-", "[null]"},
      {"1.2.3", "\"1.2.3\""},
      {"2000", "2000"},
      {"2000-01-01", "\"2000-01-01\""},
      {"2000-01", "\"2000-01\""},
      {"2000-01-01T06:00:00Z", "\"2000-01-01T06:00:00Z\""},
      {"10:30", "\"10:30\""},
      {"6h", "\"6h\""},
      {"-6h", "\"-6h\""},
      {"'#3'", "\"#3\""},
      {"2m_temperature", "\"2m_temperature\""},
      {"'5'", "\"5\""},
      {"\"true\"", "\"true\""},
      {"!!str 5", "\"5\""},
      {"! 5", "\"5\""},
      {"\"\\u00e9\\n\\x00\"", "\"\u00e9\\n\\u0000\""},
      {"|\n a\n b\n", "\"a\\nb\\n\""},
      {">-\n a\n b\n", "\"a b\""},
  };
  for (const auto& [yaml, expected] : cases) EXPECT_EQ(json(yaml), expected) << yaml;
  EXPECT_EQ(json("{5: a, true: b, ~: c, 'x y': d}"), R"({"5":"a","true":"b","~":"c","x y":"d"})")
      << "keys are texts";
}

TEST(Yaml, AnAliasIsTheWholeOfItsAnchor) {
  EXPECT_EQ(json("a: &fields [t, q]\nb: *fields\nc: {variables: *fields, n: &n 3, m: *n}\n"),
            R"({"a":["t","q"],"b":["t","q"],"c":{"variables":["t","q"],"n":3,"m":3}})");
  EXPECT_EQ(json("a: &x 1\nb: &x [2]\nc: *x\n"), R"({"a":1,"b":[2],"c":[2]})");
  EXPECT_THAT(refusal("a: *no\n"), HasSubstr("line 1, column 4: the alias 'no' has no anchor"));
  EXPECT_THAT(refusal("a: &a [*a]\n"), HasSubstr("the alias 'a' has no anchor that ends before"));
}

TEST(Yaml, WhatHasNoJsonIsRefused) {
  const std::pair<std::string, const char*> cases[] = {
      {"a: 1\n---\nb: 2\n", "line 2, column 1: a second document begins here"},
      {"a: !!float 3\n", "line 1, column 4: the tag 'tag:yaml.org,2002:float'"},
      {"a: !!python/object:os.system {}\n", "the tag"},
      {"a: !x [1]\n", "the tag '!x'"},
      {"[a]: 1\n", "line 1, column 1: a key is a word or a number"},
      {"{a: 1}: 1\n", "a key is a word or a number"},
      {"a: &k x\n*k : 1\n", "a key is a word or a number"},
      {"a: .inf\n", "line 1, column 4: '.inf' is not a number of JSON"},
      {"a: -.Inf\n", "'-.Inf' is not a number"},
      {"a: .NaN\n", "'.NaN' is not a number"},
      {"a: [1\n", "not valid YAML at line 2, column 1"},
      {"a: b: c\n", "not valid YAML at line 1, column 5"},
      {"a:\n\t- 1\n", "not valid YAML at line 2"},
      {"a: \xff\n", "not valid YAML at byte 3"},
      {"%YAML 3.0\n---\na\n", "not valid YAML"},
      {"a: @x\n", "not valid YAML at line 1, column 4"},
  };
  for (const auto& [yaml, message] : cases) EXPECT_THAT(refusal(yaml), HasSubstr(message)) << yaml;
}

TEST(Yaml, LevelsAreThoseOfJson) {
  const auto nested = [](int levels) {
    return std::string(static_cast<std::size_t>(levels), '[') +
           std::string(static_cast<std::size_t>(levels), ']');
  };
  EXPECT_EQ(json(nested(kMaxJsonDepth)), nested(kMaxJsonDepth));
  EXPECT_THAT(refusal(nested(kMaxJsonDepth + 1)), HasSubstr("more than 64 levels"));
  // By aliases: each anchor is one level deeper than the one before it.
  std::string yaml = "a0: &a0 [1]\n";
  for (int i = 1; i < 80; ++i)
    yaml += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" + std::to_string(i - 1) +
            "]\n";
  EXPECT_THAT(refusal(yaml), HasSubstr("more than 64 levels"));
}

TEST(Yaml, ABombOfAliasesIsRefusedAtOnce) {
  std::string laughs = "a: &a [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n";
  for (char c = 'b'; c <= 'i'; ++c) {
    laughs += std::string(1, c) + ": &" + c + " [";
    for (int i = 0; i < 9; ++i) laughs += std::string(i == 0 ? "" : ", ") + "*" + char(c - 1);
    laughs += "]\n";
  }
  EXPECT_THAT(refusal(laughs), HasSubstr("larger than 16 MB"));
  // Anchors that are never used are kept, too.
  std::string kept = "x: &x0 [" + std::string(1 << 20, 'a') + "]\n";
  for (int i = 1; i < 20; ++i)
    kept +=
        "x" + std::to_string(i) + ": &x" + std::to_string(i) + " *x" + std::to_string(i - 1) + "\n";
  EXPECT_THAT(refusal(kept), HasSubstr("not valid YAML"));  // an alias cannot have an anchor
  std::string many;
  for (int i = 0; i < 20; ++i)
    many += "x" + std::to_string(i) + ": &x" + std::to_string(i) + " " + std::string(1 << 20, 'a') +
            "\n";
  EXPECT_THAT(refusal(many), HasSubstr("16 MB"));
}

TEST(Yaml, HostileTextsTakeLittleTime) {
  constexpr std::size_t kSize = 1 << 20;
  const auto repeated = [](const std::string& text) {
    std::string all;
    while (all.size() < kSize) all += text;
    return all;
  };
  for (const char* text : {"[",    "{",     "- ",    "? ",        "- - ",   "[[",   "{a: ", "&a ",
                           "*a ",  "!x ",   "a: ",   "a:\n",      "\"",     "'",    "|\n",  "# ",
                           "%x\n", "---\n", "[{",    "a,",        "!!str ", "&a [", "\n",   " ",
                           "\t",   "{? ",   "- a\n", "k: [*a,\n", ",",      "]",    "-\n"}) {
    const auto begin = std::chrono::steady_clock::now();
    try {
      json(repeated(text));
    } catch (const Error&) {
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    EXPECT_LT(took.count(), 20) << text;
  }
}

}  // namespace yaml_test
}  // namespace batchfs
