#include "engine/write/prediction/describe_predictions.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/view/assembled.h"

namespace batchfs {
namespace describe_predictions_test {

using testing::ElementsAre;
using testing::HasSubstr;

struct DescribePredictionsTest : testing::Test {
  DescribePredictionsTest() {
    data.declare("a", "<f4", {"time", "level", "y", "x"}, {6, 3, 3, 4}, {1, 3, 3, 4},
                 {{"units", "K"}, {"long_name", "a"}, {"coordinates", "other"}})
        .declare("b", "<f4", {"time", "y", "x"}, {6, 3, 4}, {1, 3, 4},
                 {{"units", "Pa"}, {"missing_value", -1.0}})
        .declare("classes", "<i2", {"time", "y", "x"}, {6, 3, 4}, {1, 3, 4})
        .declare("flow", "<c8", {"time", "y", "x"}, {6, 3, 4}, {1, 3, 4})
        .index<std::int32_t>("time", "<i4", {0, 6, 12, 18, 24, 30},
                             {{"units", "hours since 2000-01-01"}});
  }
  std::vector<PredictedArray> described(const std::string& json,
                                        const DescriptionOptions& options = {}) {
    return describe_predictions(*parse_view(data.dataset(), json), options).arrays;
  }
  std::string refusal(const std::string& json, const DescriptionOptions& options = {}) {
    return error_of([&] { described(json, options); }).why();
  }
  static std::vector<std::string> names(const PredictedArray& array) {
    std::vector<std::string> result;
    for (const PredictedAxis& axis : array.axes) result.push_back(axis.name);
    return result;
  }
  MemoryData data;
};

constexpr char kTwo[] =
    R"({"window": {"time": 1}, "batch": 2, "tensors":
        {"x": {"variables": ["classes"]},
         "y": {"variables": ["b", "a"], "offsets": {"time": [1, 2]}, "stack": "channel",
               "dims": ["channel", "y", "x"]}}})";

TEST_F(DescribePredictionsTest, OneVariableIsAnArrayAsItIsStored) {
  const auto arrays = described(
      R"({"variables": ["a"], "window": {"y": {"size": 2, "stride": 1}, "time": 1}, "batch": 2})");
  ASSERT_EQ(arrays.size(), 1u);
  EXPECT_EQ(arrays[0].name, "a");
  EXPECT_EQ(arrays[0].tensor, "a");
  EXPECT_THAT(names(arrays[0]), ElementsAre("time", "level", "y", "x"));
  EXPECT_THAT(arrays[0].order, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(arrays[0].axes[0].window, 1);
  EXPECT_EQ(arrays[0].axes[1].window, -1);
  EXPECT_EQ(arrays[0].axes[2].window, 0);
  EXPECT_EQ(arrays[0].tensor_shape, (Dims{1, 3, 2, 4}));
  EXPECT_THAT(arrays[0].tensor_dims, ElementsAre("sample", "time", "level", "y", "x"));
  EXPECT_EQ(arrays[0].attributes, Json::parse(R"({"units": "K", "long_name": "a"})"));
  EXPECT_EQ(arrays[0].type, float32());
}

TEST_F(DescribePredictionsTest, OtherOrdersOfDimensionsAreUndone) {
  const auto arrays = described(
      R"({"window": {"time": 1}, "batch": 2,
          "tensors": {"t": {"variables": ["a"], "dims": ["x", "time", "y", "level"]}}})");
  EXPECT_THAT(names(arrays[0]), ElementsAre("time", "level", "y", "x"));
  EXPECT_THAT(arrays[0].order, ElementsAre(1, 3, 2, 0));
}

TEST_F(DescribePredictionsTest, ChannelsOfAStackAreTakenApart) {
  const auto arrays = described(kTwo);  // the tensor "y"
  ASSERT_EQ(arrays.size(), 2u);
  EXPECT_EQ(arrays[0].name, "b");
  EXPECT_EQ(arrays[0].attributes, Json({{"units", "Pa"}}));
  EXPECT_THAT(names(arrays[0]), ElementsAre("time", "y", "x"));
  ASSERT_TRUE(arrays[0].stack);
  EXPECT_EQ(arrays[0].stack->dimension, 1);
  EXPECT_EQ(arrays[0].stack->first, 0);
  EXPECT_EQ(arrays[0].stack->last, 2);
  EXPECT_EQ(arrays[0].stack->lengths, (Dims{2}));
  EXPECT_EQ(arrays[1].name, "a");
  EXPECT_THAT(names(arrays[1]), ElementsAre("time", "level", "y", "x"));
  EXPECT_THAT(arrays[1].order, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(arrays[1].stack->first, 2);
  EXPECT_EQ(arrays[1].stack->last, 8);
  EXPECT_EQ(arrays[1].stack->lengths, (Dims{2, 3}));
  EXPECT_EQ(arrays[1].tensor_shape, (Dims{8, 3, 4}));
}

TEST_F(DescribePredictionsTest, LeadsHaveTheStartBeforeThem) {
  const auto arrays = described(kTwo, {.lead_time = true});
  EXPECT_THAT(names(arrays[1]), ElementsAre("init_time", "lead_time", "level", "y", "x"));
  EXPECT_THAT(arrays[1].order, ElementsAre(-1, 0, 1, 2, 3));
  EXPECT_EQ(arrays[1].axes[0].length, 4);
  EXPECT_TRUE(arrays[1].axes[0].by_start);
  EXPECT_EQ(arrays[1].axes[1].length, 2);
}

TEST_F(DescribePredictionsTest, ReducedPredictionsLieAtTheStarts) {
  const auto arrays =
      described(R"({"variables": ["a"], "window": {"x": {"size": 2}, "time": 1}, "batch": 2})",
                {.name = "score", .reduce = true});
  EXPECT_EQ(arrays[0].name, "score");
  EXPECT_THAT(names(arrays[0]), ElementsAre("time", "x"));
  EXPECT_THAT(arrays[0].order, ElementsAre(-1, -1));
  EXPECT_EQ(arrays[0].tensor_shape, Dims());
  EXPECT_FALSE(arrays[0].stack);
}

TEST_F(DescribePredictionsTest, NamesAndTypesAreChosen) {
  const auto arrays = described(kTwo, {.names = {{"a", "predicted"}}, .type = float64()});
  EXPECT_EQ(arrays[0].name, "b");
  EXPECT_EQ(arrays[1].name, "predicted");
  EXPECT_EQ(arrays[1].type, float64());
  EXPECT_THAT(refusal(kTwo, {.name = "one"}), HasSubstr("2 variables: pass name="));
  EXPECT_THAT(refusal(kTwo, {.tensors = {"z"}}), HasSubstr("no tensor 'z'; it has x, y"));
  EXPECT_THAT(refusal(kTwo, {.names = {{"a", "b"}}}), HasSubstr("two tensors have values for 'b'"));
  for (const char* name : {"x", "../a", "..", ".batchfs", "zarr.json", ""})
    EXPECT_THAT(refusal(kTwo, {.names = {{"a", name}}}),
                HasSubstr(std::string("cannot be called '") + name + "' here; pass name="));
  const std::string flow = R"({"variables": ["flow"], "window": {"time": 1}, "batch": 2})";
  EXPECT_THAT(refusal(flow), HasSubstr("complex64 cannot be written; pass dtype="));
  const auto half =
      described(R"({"variables": ["a"], "window": {"time": 1}, "batch": 2, "dtype": "bfloat16"})");
  EXPECT_EQ(half[0].type, float32());
}

TEST_F(DescribePredictionsTest, UnitsOfNormalizedValuesAreTheOriginalOnes) {
  const std::string normalized =
      R"({"variables": ["a"], "window": {"time": 1}, "batch": 2,
          "normalize": {"method": "zscore", "statistics": {"a": {"mean": 1, "std": 2}}}})";
  EXPECT_EQ(described(normalized)[0].attributes["original_units"], "K");
  const auto undone = described(normalized, {.denormalize = true});
  EXPECT_EQ(undone[0].attributes, Json::parse(R"({"long_name": "a", "units": "K"})"));
  EXPECT_NE(undone[0].scale, nullptr);
  const auto stacked = described(
      R"({"window": {"time": 1}, "batch": 2,
          "tensors": {"t": {"variables": ["a", "b"], "stack": "c"}},
          "normalize": {"method": "zscore", "except": ["b"],
                        "statistics": {"a": {"mean": 1, "std": 2}}}})");
  EXPECT_EQ(stacked[0].attributes["original_units"], "K");
  EXPECT_EQ(stacked[1].attributes["units"], "Pa");
}

TEST_F(DescribePredictionsTest, DimensionsThatAreNoNamesOfFoldersAreRefused) {
  for (const std::string dim : {"../x", "..", ".batchfs", "zarr.json"}) {
    data.declare("v", "<f4", {"time", dim}, {6, 2}, {1, 2});
    EXPECT_THAT(refusal(R"({"variables": ["v"], "window": {"time": 1}, "batch": 2})"),
                HasSubstr("a dimension that is called '" + dim + "'"));
  }
  // A name that collides with another array: "level" would have to be its labels as well.
  EXPECT_THAT(refusal(R"({"variables": ["a", "b"], "window": {"time": 1}, "batch": 2})",
                      {.names = {{"b", "level"}}}),
              HasSubstr("an array cannot be called 'level' here"));
  // A forecast's own lead time, and that of its windows.
  data.declare("f", "<f4", {"time", "lead_time"}, {6, 2}, {1, 2});
  EXPECT_THAT(
      refusal(R"({"variables": ["f"], "window": {"time": 1}, "batch": 2})", {.lead_time = true}),
      HasSubstr("two dimensions that are called 'lead_time'"));
}

TEST_F(DescribePredictionsTest, WhatHasNoPlaceIsRefused) {
  EXPECT_THAT(refusal(R"({"xbatcher": {"input_dims": {"x": 2}}, "variables": ["b"]})"),
              HasSubstr("views with \"xbatcher\" cannot be written"));
  EXPECT_THAT(refusal(R"({"window": {"time": 1}, "batch": 2,
                  "tensors": {"t": {"variables": ["b"], "coarsen": {"x": {"size": 2}}}}})"),
              HasSubstr("the view coarsens it"));
  EXPECT_THAT(refusal(R"({"window": {"time": 1}, "variables": ["b"], "batch": 2})",
                      {.reduce = true, .denormalize = true}),
              HasSubstr("denormalize= does not go with reduce="));
}

}  // namespace describe_predictions_test
}  // namespace batchfs
