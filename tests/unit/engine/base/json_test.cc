#include "engine/base/json.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace batchfs {
namespace json_test {

std::string failure(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(ParseJson, TurnsBareNanTokensIntoNumbersOutsideStringsOnly) {
  const Json json =
      parse_json(R"({"a": NaN, "b": [-Infinity, "NaN", Infinity], "c": "NaN \" Infinity"})", "x");
  EXPECT_TRUE(std::isnan(json["a"].get<double>()));
  EXPECT_EQ(json["b"][0], -std::numeric_limits<double>::infinity());
  EXPECT_EQ(json["b"][1], "NaN");
  EXPECT_EQ(json["b"][2], std::numeric_limits<double>::infinity());
  EXPECT_EQ(json["c"], "NaN \" Infinity");
}

TEST(JsonRef, AcceptsNoNumberThatJsonLacks) {
  const Json json = parse_json("[NaN, Infinity]", "x");
  for (const JsonRef& element : JsonRef(json, "").elements()) {
    EXPECT_THAT(failure([&] { element.number(); }), testing::HasSubstr("expected a number"));
    EXPECT_THAT(failure([&] { element.integer(); }), testing::HasSubstr("whole number"));
  }
}

TEST(ParseJson, NamesLineColumnAndPlaceOfASyntaxError) {
  EXPECT_EQ(
      failure([] { parse_json("{\n  \"a\": }", "view.json"); }),
      "not valid JSON at line 2, column 8: a value is expected here: `\"a\": ^}` (view.json)");
  EXPECT_THAT(failure([] { parse_json("", "k"); }), testing::HasSubstr("not valid JSON"));
  EXPECT_THAT(failure([] { parse_json("{\"a\": 1", "k"); }), testing::HasSubstr("not valid JSON"));
}

TEST(ParseJson, RefusesDeepNestingAndDuplicateKeys) {
  EXPECT_THAT(failure([] { parse_json(std::string(100000, '['), "k"); }),
              testing::HasSubstr("nested deeper"));
  EXPECT_THAT(
      failure([] { parse_json(R"({"a": 1, "b": {"a": 2, "a": 3}})", "k", {.unique_keys = true}); }),
      testing::HasSubstr("'a' is given twice"));
  EXPECT_NO_THROW(parse_json(R"({"a": {"a": 2}})", "k", {.unique_keys = true}));
}

TEST(JsonRef, ReportsThePathOfAWrongType) {
  const Json json = parse_json(R"({"a": {"b": [1, "x"]}})", "k");
  const JsonRef root(json, "");
  EXPECT_EQ(root.at("a").at("b").elements()[1].string(), "x");
  EXPECT_EQ(failure([&] { root.at("a").at("b").elements()[0].string(); }),
            "a.b[0]: expected a string");
  EXPECT_EQ(failure([&] { root.at("z"); }), "the key 'z' is missing");
}

TEST(JsonRef, IntegersAreCheckedForRangeAndFraction) {
  const Json json = parse_json(R"([3, 3.0, 3.5, 18446744073709551615, -1, true])", "k");
  const auto e = JsonRef(json, "").elements();
  EXPECT_EQ(e[0].integer(), 3);
  EXPECT_EQ(e[1].integer(), 3);
  EXPECT_THROW(e[2].integer(), Error);
  EXPECT_THROW(e[3].integer(), Error);
  EXPECT_THROW(e[4].integer(0), Error);
  EXPECT_THROW(e[5].integer(), Error);
}

TEST(JsonRef, AllowOnlySuggestsTheNearestKey) {
  const Json json = parse_json(R"({"windw": 1})", "k");
  EXPECT_EQ(failure([&] {
              JsonRef(json, "").allow_only({"window", "select"});
            }),
            "unknown key 'windw', did you mean 'window'?");
}

TEST(Nearest, IsEmptyWhenNothingIsNear) {
  EXPECT_EQ(nearest("temprature", {"temperature", "salinity"}), "temperature");
  EXPECT_EQ(nearest("xyzzyxyz", {"temperature", "salinity"}), "");
  EXPECT_EQ(nearest("tt", {"q", "uv"}), "");  // two changes make anything of it
  EXPECT_EQ(nearest("tt", {"q", "t"}), "t");
  // Two letters that change places are one mistake.
  EXPECT_EQ(nearest("--veiw", {"--size", "--vein", "--view"}), "--vein");
  EXPECT_EQ(nearest("--veiw", {"--pew", "--view"}), "--view");
  // A name that contains it is near, the shortest of several.
  EXPECT_EQ(nearest("zenith", {"azimuth_of_noon", "mean_cos_zenith", "cos_zenith"}), "cos_zenith");
  EXPECT_EQ(nearest("cos", {"azimuth_of_noon", "cosine_of_zenith"}), "");  // part of too many names
}

TEST(Nearest, OrAllThereAre) {
  EXPECT_EQ(nearest_or_all("salinty", {"temperature", "salinity"}), ", did you mean 'salinity'?");
  EXPECT_EQ(nearest_or_all("xyzzyxyz", {"temperature", "salinity"}),
            "; there are temperature, salinity");
  EXPECT_EQ(nearest_or_all("xyzzyxyz", {"temperature"}), "; there is temperature");
  EXPECT_EQ(nearest_or_all("zz", {"a", "b", "c", "d", "e", "f", "g", "h", "i"}),
            "; there are a, b, c, d, e, f, g, h, ...");
  EXPECT_EQ(nearest_or_all("zz", {}), "");
}

}  // namespace json_test
}  // namespace batchfs
