#include "engine/base/json_repair.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/json_text.h"

namespace batchfs {
namespace json_repair_test {

using testing::ElementsAre;

struct Repaired {
  std::string text;  // empty: nothing was repaired
  std::vector<std::string> places;
};

Repaired repaired(std::string_view text) {
  Repaired result;
  result.text = repair_json(text, [&](const JsonRepair& repair) {
                  std::string place(repair.read_as);
                  for (const std::string& key : repair.path) place += "/" + key;
                  result.places.push_back(place);
                }).value_or("");
  return result;
}

TEST(RepairJson, LeavesJsonAlone) {
  for (const char* text :
       {"", "{", "[", "]", "}", "\"", "\"\\", "\"\\u", "\"\\ud8\"", R"({"a": "\ud83d\ude00"})",
        R"(["\\udcb0", "\u00b0"])", R"([1e308, -1e-400, 12345678901234567890])", "1e400x", "01e400",
        "[1e400e1, --1e999, 1e, 1.e999, .1e999]", R"({"1e400": "1e400 \" 1e400"})"})
    EXPECT_EQ(repaired(text).text, "") << text;
}

TEST(RepairJson, HalvesOfSurrogatePairsAreReplaced) {
  EXPECT_EQ(repaired(R"({"units": "\udcb0C"})").text, R"({"units": "\ufffdC"})");
  EXPECT_EQ(repaired(R"("\ud83d")").text, R"("\ufffd")");
  EXPECT_EQ(repaired(R"("\ud83d\ud83d\ude00\uDE00")").text, R"("\ufffd\ud83d\ude00\ufffd")");
  EXPECT_EQ(repaired(R"("\ud83d\u0041\\\udfff\n")").text, R"("\ufffd\u0041\\\ufffd\n")");
  EXPECT_EQ(repaired(R"("\ud83d)").text, R"("\ufffd)");
}

TEST(RepairJson, NumbersBeyondFloat64AreInfinite) {
  EXPECT_EQ(repaired("[1e400, -1E+999,1.5e309]").text, "[Infinity, -Infinity,Infinity]");
  EXPECT_EQ(repaired(std::string(400, '9')).text, "Infinity");
}

TEST(RepairJson, NamesThePlaces) {
  EXPECT_THAT(
      repaired(
          R"({"a": {"b": [1, {"c": 1e400}], "\udcb0": 1, "d": "\udcb0"}, "e\u0041": [[1e999]], "f": 2})")
          .places,
      ElementsAre("infinity/a/b//c", "U+FFFD/a/\xef\xbf\xbd", "U+FFFD/a/d", "infinity/eA//"));
}

TEST(ParsePythonJson, ReadsAsPythonDoesWhereItCan) {
  int repairs = 0;
  const auto count = [&](const JsonRepair&) { ++repairs; };
  EXPECT_EQ(
      python_json_text(parse_python_json(R"({"a": [1, NaN]})", "k", kMaxJsonMemory, count), -1),
      R"({"a":[1,NaN]})");
  EXPECT_EQ(repairs, 0);
  const Json repaired =
      parse_python_json(R"({"a": ["\udcb0", -1e400, NaN]})", "k", kMaxJsonMemory, count);
  EXPECT_EQ(python_json_text(repaired, -1), "{\"a\":[\"\xef\xbf\xbd\",-Infinity,NaN]}");
  EXPECT_EQ(repairs, 2);
}

TEST(ParsePythonJson, RefusesTheRest) {
  const auto refuses = [](std::string_view text, std::uint64_t memory = kMaxJsonMemory) {
    try {
      parse_python_json(text, "k", memory, [](const JsonRepair&) {});
      return std::string();
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  EXPECT_NE(refuses(R"({"a": })"), "");
  EXPECT_NE(refuses(R"({"a": "\udcb0", "b": })"), "");
  EXPECT_NE(refuses("{\"a\": \"\xb0\"}"), "") << "Python does not read this either";
  EXPECT_NE(refuses(std::string(100000, '[') + "1e400"), "");
  EXPECT_NE(refuses("[\"\\udcb0\"" + std::string(100000, ' ') + "]", 200000), "");
}

}  // namespace json_repair_test
}  // namespace batchfs
