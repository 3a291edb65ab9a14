#include "engine/store/references/reference_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace batchfs {
namespace reference_json_test {

using references::parse_reference_json;
using references::ReferenceTable;
using references::Target;
using testing::HasSubstr;

constexpr std::uint64_t kMemory = 1 << 20;

std::string found(const ReferenceTable& table, const std::string& key) {
  const std::optional<Target> target = table.find(key);
  if (!target) return "missing";
  if (target->kind == Target::Kind::within)
    return std::string(reinterpret_cast<const char*>(target->bytes.data()), target->bytes.size());
  std::string text(target->file);
  if (target->kind == Target::Kind::range)
    text += " " + std::to_string(target->offset) + " " + std::to_string(target->length);
  return text;
}

TEST(ReferenceJson, ReadsBothVersions) {
  const std::string refs =
      R"({".zgroup": "{\"zarr_format\":2}", "a/.zarray": {"x": NaN}, "a/0": ["f", 1, 2],
          "a/1": ["f\u00e9"], "a/2": "base64:AAEC", "a/3": "\u0000x", "a/4": "base64:AAE=",
          "a/5": ["{{u}}", 1, 2]})";
  for (const std::string& text :
       {refs, R"({"version": 1, "refs": )" + refs + "}", R"({"refs":)" + refs + R"(,"version":1})",
        "\xef\xbb\xbf" + refs}) {
    const auto table = parse_reference_json(text, kMemory);
    EXPECT_EQ(table->references(), 8u);
    EXPECT_EQ(found(*table, ".zgroup"), R"({"zarr_format":2})");
    EXPECT_EQ(found(*table, "a/.zarray"), R"({"x": NaN})");
    EXPECT_EQ(found(*table, "a/0"), "f 1 2");
    EXPECT_EQ(found(*table, "a/1"), "f\xc3\xa9");
    EXPECT_EQ(found(*table, "a/2"), std::string("\0\1\2", 3));
    EXPECT_EQ(found(*table, "a/3"), std::string("\0x", 2));
    EXPECT_EQ(found(*table, "a/4"), std::string("\0\1", 2));
    EXPECT_EQ(found(*table, "a/5"), "{{u}} 1 2");  // without templates it is a name
  }
  EXPECT_EQ(parse_reference_json("{}", kMemory)->references(), 0u);
  EXPECT_EQ(parse_reference_json(R"({"version": 1})", kMemory)->references(), 0u);
}

TEST(ReferenceJson, ReadsTheExampleOfTheSpecification) {
  const auto table = parse_reference_json(R"({
    "version": 1,
    "templates": {"u": "server.domain/path", "f": "{{c}}"},
    "gen": [{"key": "gen_key{{i}}", "url": "http://{{u}}_{{i}}", "offset": "{{(i + 1) * 1000}}",
             "length": "1000", "dimensions": {"i": {"stop": 5}}}],
    "refs": {"key0": "data", "key1": ["http://target_url", 10000, 100],
             "key2": ["http://{{u}}", 10000, 100], "key3": ["http://{{f(c='text')}}", 10000, 100]}
  })",
                                          kMemory);
  EXPECT_EQ(found(*table, "key0"), "data");
  EXPECT_EQ(found(*table, "key1"), "http://target_url 10000 100");
  EXPECT_EQ(found(*table, "key2"), "http://server.domain/path 10000 100");
  EXPECT_EQ(found(*table, "key3"), "http://text 10000 100");
  EXPECT_EQ(found(*table, "gen_key0"), "http://server.domain/path_0 1000 1000");
  EXPECT_EQ(found(*table, "gen_key4"), "http://server.domain/path_4 5000 1000");
  EXPECT_EQ(found(*table, "gen_key5"), "missing");
}

TEST(ReferenceJson, GeneratesProducts) {
  const auto table = parse_reference_json(
      R"({"version": 1, "gen": [{"key": "a/{{i}}.{{j}}", "url": "f", "offset": "{{i}}", "length": 1,
          "dimensions": {"i": {"start": 4, "stop": -1, "step": -2}, "j": [7, 9]}},
         {"key": "b{{i}}", "url": "f", "dimensions": {"i": []}},
         {"key": "c", "url": "g", "dimensions": {}}]})",
      kMemory);
  EXPECT_EQ(table->references(), 7u);
  EXPECT_EQ(found(*table, "a/4.9"), "f 4 1");
  EXPECT_EQ(found(*table, "a/0.7"), "f 0 1");
  EXPECT_EQ(found(*table, "c"), "g");
}

std::string refusal(const std::string& text, std::uint64_t memory = kMemory) {
  try {
    parse_reference_json(text, memory);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// tests/conformance/references_test.py has the others.
TEST(ReferenceJson, RefusesWhatItCannotRead) {
  EXPECT_THAT(refusal("[]"), HasSubstr("scan_grib"));
  EXPECT_THAT(refusal(R"({"version": 7})"), HasSubstr("version 7"));
  EXPECT_THAT(refusal(R"({"version": 1} x)"), HasSubstr("text after its end"));
  EXPECT_THAT(refusal(R"({"a": "x"})", 100), HasSubstr("--memory"));
  EXPECT_THAT(refusal(R"({"version": 1, "gen": [{"key": "a", "url": "f", "urls": "",
                          "dimensions": {}}]})"),
              HasSubstr("did you mean 'url'?"));
}

/// Why the reference of a key is malformed.
std::string malformed(const std::string& value) {
  const auto table = parse_reference_json(
      R"({"version": 1, "templates": {"u": "x"}, "refs": {"a/0": "x", "a/1": )" + value +
          R"(, "a/2": ["{{u}}", 1, 2]}})",
      kMemory);
  EXPECT_EQ(found(*table, "a/0"), "x") << value;
  EXPECT_EQ(found(*table, "a/2"), "x 1 2") << value;
  EXPECT_EQ(table->problems().size(), 1u) << value;
  EXPECT_EQ(table->problems().at(0).first, "a/1") << value;
  try {
    table->find("a/1");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::corrupt) << value;
    EXPECT_THAT(error.what(), HasSubstr(table->problems().at(0).second)) << value;
    return error.what();
  }
  return "";
}

// tests/conformance/damaged_references_test.py has the others.
TEST(ReferenceJson, AMalformedValueCostsItsKey) {
  EXPECT_THAT(malformed("true"), HasSubstr("malformed: 'true' is neither bytes nor"));
  EXPECT_THAT(malformed(R"("base64:A")"), HasSubstr("'base64:A' is not valid base64"));
  EXPECT_THAT(malformed(R"(["f", 1, 2, 3])"), HasSubstr("expected [file]"));
  EXPECT_THAT(malformed(R"(["f", -1, 2])"), HasSubstr("'-1' is not a whole number from 0"));
  EXPECT_THAT(malformed(R"(["f", 1, 0])"), HasSubstr("without bytes"));
  EXPECT_THAT(malformed(R"(["", 1, 2])"), HasSubstr("empty"));
  EXPECT_THAT(malformed(R"([null, 1, 2])"), HasSubstr("target="));
  EXPECT_THAT(malformed(R"(["{{v}}", 1, 2])"), HasSubstr("'v' is neither a template"));
  EXPECT_THAT(malformed(R"(["{{u|upper}}", 1, 2])"), HasSubstr("jinja2"));
  EXPECT_THAT(malformed(R"("\ud800")"), HasSubstr("surrogates"));
  EXPECT_THAT(malformed(R"(["\ud800", {"x": ["]"]}])"), HasSubstr("surrogates"));
}

TEST(ReferenceJson, AKeyThatUtf8CannotHoldIsAProblem) {
  const auto table = parse_reference_json(R"({"a/0": "x", "b/\ud800": ["f", 1, 2]})", kMemory);
  EXPECT_EQ(found(*table, "a/0"), "x");
  EXPECT_EQ(table->problems().size(), 1u);
}

TEST(ReferenceJson, TextThatIsNotJsonIsRefused) {
  for (const char* value : {"", "{]", "\"x", "[\"f\", 1", "true false", "\"x\" 5", "}"})
    EXPECT_NE(refusal(std::string("{\"a/0\": ") + value + ", \"a/1\": true}"), "") << value;
}

TEST(ReferenceJson, IsToldByItsFirstCharacter) {
  EXPECT_TRUE(references::may_be_reference_json(" \n{"));
  EXPECT_TRUE(references::may_be_reference_json("\xef\xbb\xbf["));
  EXPECT_FALSE(references::may_be_reference_json(""));
  EXPECT_FALSE(references::may_be_reference_json("<html>"));
}

}  // namespace reference_json_test
}  // namespace batchfs
