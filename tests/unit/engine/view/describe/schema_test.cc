// schema.json: the members for labels. Its other members: view_test.cc.
#include <gmock/gmock.h>

#include "engine/view/describe/schema.h"
#include "tests/unit/engine/view/assembled.h"
#include "tests/unit/engine/view/provenance_of.h"

namespace batchfs {
namespace schema_test {

MemoryData weather() {
  MemoryData data;
  data.declare("t", "<f4", {"time", "level", "x"}, {6, 2, 3}, {1, 2, 3},
               {{"units", "K"}, {"source", "made up"}, {"scale_factor", 2.0}})
      .declare("s", "<f4", {"time", "x"}, {6, 3}, {1, 3}, {{"units", "m"}, {"source", "made up"}})
      .index<std::int32_t>("time", "<i4", {0, 6, 12, 18, 24, 30},
                           {{"units", "hours since 2000-01-01"}, {"axis", "T"}})
      .index<std::int32_t>("level", "<i4", {500, 850}, {{"units", "hPa"}});
  return data;
}

Json schema(const std::string& view) { return view_schema(*parse_view(weather().dataset(), view)); }

TEST(ViewSchema, HasTheAttributesOfVariablesAndCoordinates) {
  const Json plain = schema(R"({"window": {"time": 1}, "variables": ["t"]})");
  EXPECT_EQ(plain["tensors"][0]["attributes"], Json({{"units", "K"}, {"source", "made up"}}));
  EXPECT_EQ(plain["tensors"][0]["variables"], Json::parse(R"([{"name": "t"}])"));
  EXPECT_FALSE(plain["tensors"][0].contains("stack"));
  EXPECT_EQ(plain["coordinates"][0]["attributes"], Json({{"axis", "T"}}));
  EXPECT_EQ(plain["coordinates"][1]["attributes"], Json({{"units", "hPa"}}));
}

TEST(ViewSchema, SaysWhatAStackIsMadeOf) {
  const Json stack = schema(R"({"window": {"time": 1}, "dtype": "float32", "tensors": {"y": {
      "variables": ["t", "s"], "stack": "channel", "offsets": {"time": [0, 2]}}}})")["tensors"][0];
  EXPECT_EQ(stack["stack"], "channel");
  EXPECT_EQ(stack["attributes"], Json({{"source", "made up"}}));
  EXPECT_EQ(stack["variables"], Json::parse(R"([
      {"name": "t", "joined": {"level": 2}, "offsets": {"time": [0, 2]}},
      {"name": "s", "offsets": {"time": [0, 2]}}])"));
}

TEST(ViewSchema, UnitsOfNormalizedValuesHaveAnotherName) {
  const Json normalized = schema(R"({"window": {"time": 1}, "variables": ["t", "s"], "normalize": {
      "method": "zscore", "statistics": {"t": {"mean": 280, "std": 10}}, "variables": ["t"]}})");
  EXPECT_EQ(normalized["tensors"][0]["attributes"],
            Json({{"original_units", "K"}, {"source", "made up"}}));
  EXPECT_EQ(normalized["tensors"][1]["attributes"]["units"], "m");
}

TEST(ViewSchema, WindowsWithoutACoordinateHavePositions) {
  const auto window = [](const char* select) {
    return schema(
        std::string(R"({"variables": ["t"], "window": {"x": 1, "time": 2}, "select": {"x": )") +
        select + "}}")["window"];
  };
  EXPECT_EQ(window(R"({"from": "#1"})"), Json::parse(R"([
      {"dim": "x", "size": 1, "positions": {"first": 1, "step": 1, "size": 2}},
      {"dim": "time", "size": 2}])"));
  EXPECT_EQ(window(R"(["#2", "#0"])")[0]["positions"],
            Json::parse(R"({"first": 2, "step": -2, "size": 2})"));
  EXPECT_EQ(window(R"(["#2", "#0", "#1"])")[0]["positions"], Json::parse(R"({"list": [2, 0, 1]})"));
}

TEST(ViewSchema, WindowsOfABatchAreNumbersAndStarts) {
  const auto view = parse_view(weather().dataset(), R"({"variables": ["t"], "batch": 4,
      "window": {"time": {"size": 2, "stride": 2}, "x": 2}, "select": {"x": ["#2", "#0"]}})");
  EXPECT_THAT(view->batch_windows(0, 0), testing::ElementsAre(0, 1, 2, 0, 0, 2, 0, 4, 0));
  const auto xbatcher = parse_view(weather().dataset(), R"({"variables": ["t"],
      "xbatcher": {"input_dims": {"x": 2}, "batch_dims": {"time": 3}}})");
  EXPECT_THAT(xbatcher->batch_windows(0, 1), testing::ElementsAre(1, 3, 0));
  EXPECT_EQ(provenance_of(xbatcher, 0, 1)["starts"], Json::parse("[[3, 0]]"));
}

}  // namespace schema_test
}  // namespace batchfs
