#include "engine/view/view.h"

#include <gmock/gmock.h>

#include "engine/view/describe/batch_coordinates.h"
#include "engine/view/describe/resolved.h"
#include "engine/view/describe/schema.h"
#include "engine/view/tensors/tensor_layout.h"
#include "engine/view/tensors/tensor_set.h"
#include "tests/unit/engine/view/assembled.h"
#include "tests/unit/engine/view/provenance_of.h"

namespace batchfs {
namespace view_test {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

TEST(View, NoVariableWithTheDimensionsSaysWhichThereAre) {
  const Error error = error_of([&] {
    MemoryData data;
    data.declare("a", "<f4", {"x"}, {2}, {2}).declare("b", "<f4", {"y"}, {2}, {2});
    parse_view(data.dataset(), R"({"window": {"x": 1, "y": 1}})");
  });
  EXPECT_EQ(error.code(), ErrorCode::not_found);
  EXPECT_EQ(error.why(), "no variable has the dimensions x, y; there are a, b");
  EXPECT_EQ(error.where(), "file.json");
}

TEST(View, IsThereForEveryFormOfTheFile) {
  MemoryData data;
  data.declare("q", "<f4", {"time", "lat"}, {100, 721}, {1, 721});
  const auto dataset = data.dataset();
  EXPECT_EQ(parse_view(dataset, R"({"variables": ["q"], "window": {"time": 10}})")->samples(), 10);
  EXPECT_EQ(parse_view(dataset, R"({"variables": ["q"], "xbatcher": {"input_dims": {"time": 10}}})")
                ->samples(),
            10);
  EXPECT_EQ(parse_view(dataset, R"({"variables": ["q"], "window": {"time": 10}})")->name(),
            "given");
}

TEST(View, DoesNotReadItsVariables) {
  // The chunks of `t` would be 74 PB.
  MemoryData data;
  data.declare("t", "<f4", {"time", "cell"}, {INT64_C(1) << 40, 1 << 14}, {1, 1 << 14});
  const auto view = parse_view(
      data.dataset(), R"({"window": {"time": 1}, "batch": 2, "order": {"shuffle": "global"}})");
  EXPECT_EQ(view->samples(), INT64_C(1) << 40);
  assembled(*view, 0, view->batches() / 2);
}

struct AnyView : testing::Test {
  AnyView() {
    data.declare("a", "<f8", {"time", "level", "x"}, {6, 2, 4}, {2, 2, 4})
        .declare("unused", "<f4", {"z"}, {3}, {3})
        .index<std::int32_t>("time", "<i4", {0, 6, 12, 18, 24, 30},
                             {{"units", "hours since 2000-01-01"}})
        .index<std::int32_t>("level", "<i4", {500, 850})
        .index<double>("z", "<f8", {1, 2, 3});
    dataset = data.dataset();
  }
  std::shared_ptr<const View> view(const std::string& json) const {
    return parse_view(dataset, json);
  }
  MemoryData data;
  std::shared_ptr<const Dataset> dataset;
};

TEST_F(AnyView, SchemaHasWhatProgramsRelyOn) {
  const auto v = view(
      R"({"name": "n", "window": {"time": 2}, "batch": 2, "epochs": 3, "dtype": "float32", "formats": ["npz"],
                          "select": {"level": 850}})");
  EXPECT_EQ(view_schema(*v), parse_json(R"({
    "view": "n", "samples": 3, "batch_size": 2, "batches": 2, "epochs": 3,
    "window": [{"dim": "time", "size": 2}],
    "tensors": [{"name": "a", "dtype": "float32", "shape": [2, 2, 4], "dims": ["sample", "time", "x"],
                 "variables": [{"name": "a"}], "attributes": {}}],
    "coordinates": [{"name": "time", "dims": ["time"], "dtype": "datetime64[ns]", "size": 6, "attributes": {}},
                    {"name": "level", "dims": ["level"], "dtype": "int32", "size": 1, "attributes": {}}],
    "formats": ["npz"]})",
                                        ""));
}

TEST_F(AnyView, TensorsShareTheConverterOfAVariable) {
  const auto v = view(R"({"window": {"time": {"size": 1, "stride": 1}}, "dtype": "float32",
                          "tensors": {"x": {"variables": ["a"]}, "y": {"variables": ["a"], "offsets": {"time": [1]}}}})");
  EXPECT_EQ(&v->tensor_set().converter(0, 0), &v->tensor_set().converter(1, 0));
  EXPECT_EQ(v->tensor_set().converter(1, 0).result(), float32());
  EXPECT_EQ(v->tensor_set().converters.size(), 2u);
}

TEST_F(AnyView, SchemaSaysWhatLiesAlongAStack) {
  const auto channels = [&](const std::string& members) {
    const auto stack = view(R"({"window": {"time": {"size": 2, "stride": 1}}, )" + members + "}");
    return view_schema(*stack)["tensors"][0].value("channels", Json());
  };
  EXPECT_EQ(channels(R"("tensors": {"p": {"variables": ["a"], "stack": "channel"}})"),
            Json::array({"a"}));
  EXPECT_EQ(channels(R"("tensors": {"p": {"variables": ["a"], "stack": "channel",
                                          "dims": ["channel", "time"]}})"),
            Json::array({"a_500_0", "a_500_1", "a_500_2", "a_500_3", "a_850_0", "a_850_1",
                         "a_850_2", "a_850_3"}));
  EXPECT_EQ(
      channels(
          R"("select": {"level": 850}, "tensors": {"p": {"variables": ["a"], "stack": "channel", "dims": ["time", "channel"]}})"),
      Json::array({"a_0", "a_1", "a_2", "a_3"}));
  EXPECT_EQ(
      channels(
          R"("tensors": {"p": {"variables": ["a"], "stack": "channel", "offsets": {"time": [0, 3]}, "dims": ["channel", "x"]}})"),
      Json::array({"a_0_500", "a_0_850", "a_1_500", "a_1_850", "a_3_500", "a_3_850", "a_4_500",
                   "a_4_850"}));
  EXPECT_EQ(channels(R"("tensors": {"p": {"variables": ["a"]}})"), Json());
}

TEST_F(AnyView, ResolvedHasEveryDefaultAndReadsBackAsTheSameView) {
  const auto v = view(R"({"window": {"time": 2}})");
  const Json resolved = resolved_view(*v);
  EXPECT_EQ(resolved["name"], "given");
  EXPECT_EQ(resolved["variables"], Json::array({"a"}));
  EXPECT_EQ(resolved["window"]["time"]["size"], 2);
  EXPECT_EQ(resolved["window"]["time"]["stride"], 2);
  EXPECT_EQ(resolved["window"]["time"]["wrap"], false);
  EXPECT_EQ(resolved["batch"], parse_json(R"({"size": 1, "remainder": "keep"})", ""));
  EXPECT_EQ(resolved["order"], parse_json(R"({"shuffle": "none", "seed": 0})", ""));
  EXPECT_EQ(resolved["epochs"], 1);
  EXPECT_EQ(resolved["formats"], Json::array({"npy"}));
  MemoryData two;
  two.declare("p", "<f4", {"t"}, {4}, {4}).declare("q", "<f4", {"t"}, {4}, {4});
  const auto xbatcher = parse_view(two.dataset(), R"({"xbatcher": {"input_dims": {"t": 2}}})");
  EXPECT_EQ(resolved_view(*xbatcher)["variables"], parse_json(R"(["p", "q"])", ""));
  for (
      const char* json :
      {R"({"window": {"time": 2}})",
       R"({"window": {"time": {"size": 2, "stride": 1}}, "order": {"shuffle": "block", "seed": 3, "buffer": 2},
                               "tensors": {"q": {"variables": ["a"], "offsets": {"time": [-1]}}}, "batch": {"size": 2, "remainder": "pad"}})",
       R"({"variables": ["a"], "xbatcher": {"input_dims": {"time": 2}}, "select": {"level": [500]}})"}) {
    SCOPED_TRACE(json);
    const auto first = view(json), second = view(resolved_view(*first).dump());
    EXPECT_EQ(resolved_view(*second), resolved_view(*first));
    EXPECT_EQ(view_schema(*second), view_schema(*first));
    EXPECT_EQ(provenance_of(second, 0, 1), provenance_of(first, 0, 1));
  }
}

TEST_F(AnyView, ProvenanceTellsWhereABatchComesFrom) {
  const auto v = view(
      R"({"name": "n", "select": {"time": {"from": "#1"}}, "window": {"time": 2}, "batch": 2})");
  EXPECT_EQ(provenance_of(v, 4, 0), parse_json(R"({
    "view": "n", "epoch": 4, "batch": 0, "samples": [0, 1],
    "windows": [{"time": [1, 3]}, {"time": [3, 5]}], "starts": [[0], [2]],
    "coordinates": {"time": ["2000-01-01T06:00:00", "2000-01-01T18:00:00"]},
    "chunks": ["a/0.0.0", "a/1.0.0", "a/2.0.0"]})",
                                               ""));
}

TEST_F(AnyView, CoordinatesAreThoseOfTheSelection) {
  const auto v = view(R"({"select": {"time": ["#4", "#1"], "level": 500}, "window": {"time": 1}})");
  const auto& coordinates = v->coordinates();
  std::vector<std::string> names;
  for (const ViewCoordinate& c : coordinates) names.push_back(c.name);
  EXPECT_THAT(names,
              UnorderedElementsAre("time", "level"));  // z belongs to no variable of the view
  // numpy.array(["2000-01-02", "2000-01-01T06"], "M8[ns]").astype("i8")
  EXPECT_THAT(values_of<std::int64_t>(*coordinates[0].values),
              ElementsAre(946771200000000000, 946706400000000000));
  EXPECT_THAT(values_of<std::int32_t>(*coordinates[1].values), ElementsAre(500));
}

TEST_F(AnyView, CoordinatesOfABatchRunAlongItsSamples) {
  const auto v = view(R"({"window": {"time": {"size": 2, "stride": 1}}, "batch": 2})");
  const auto coordinates = batch_coordinates(*v, 0, 1);
  ASSERT_EQ(coordinates.size(), 2u);
  EXPECT_EQ(coordinates[0].name, "time_start");
  EXPECT_THAT(coordinates[0].dims, ElementsAre("sample"));
  // numpy.array(["2000-01-01T12", "2000-01-01T18"], "M8[ns]").astype("i8")
  EXPECT_THAT(values_of<std::int64_t>(coordinates[0].values()),
              ElementsAre(946728000000000000, 946749600000000000));
  EXPECT_EQ(coordinates[1].name, "level");
  EXPECT_THAT(coordinates[1].dims, ElementsAre("level"));
}

TEST_F(AnyView, ConvertersAreOfTensorAndVariable) {
  const auto v = view(
      R"({"window": {"time": 1}, "dtype": "float32", "tensors": {"x": {"variables": ["a"]}, "t": {"variables": ["time"]}}})");
  ASSERT_EQ(v->variables().size(), 2u);
  EXPECT_EQ(v->tensor_set().converter(0, 0).result_itemsize(), 4u);
  EXPECT_EQ(v->tensor_set().converter(0, 0).source_itemsize(), 8u);
  EXPECT_EQ(v->tensor_set().converter(1, 1).source_itemsize(), 4u);
  EXPECT_EQ(v->tensor_set().converter(1, 1).result_itemsize(), 8u);
}

TEST_F(AnyView, APlanIsAPureFunction) {
  const auto v =
      view(R"({"window": {"time": 1}, "batch": 4, "order": {"shuffle": "global", "seed": 1}})");
  const BatchPlan one = v->plan(2, 0), two = v->plan(2, 0), other = v->plan(3, 0);
  EXPECT_EQ(one.samples, two.samples);
  EXPECT_NE(one.samples, other.samples);
  EXPECT_EQ(one.samples, v->batch_samples(2, 0));
  ASSERT_EQ(one.parts.size(), two.parts.size());
  for (std::size_t i = 0; i < one.parts.size(); ++i) {
    EXPECT_EQ(Box(one.parts[i].source), Box(two.parts[i].source));
    EXPECT_EQ(one.parts[i].offset, two.parts[i].offset);
  }
}

TEST_F(AnyView, WhatFitsATensor) {
  MemoryData types;
  types.declare("f", "<f2", {"x"}, {1}, {1})
      .declare("t", "<m8[s]", {"x"}, {1}, {1})
      .declare("b", "|b1", {"x"}, {1}, {1})
      .declare("c", "<c16", {"x"}, {1}, {1})
      .declare("s", "|S3", {"x"}, {1}, {1})
      .declare("u", "<U3", {"x"}, {1}, {1})
      .declare("v", "|V3", {"x"}, {1}, {1})
      .declare("bad", "<i2", {"x"}, {1}, {1}, {{"scale_factor", "no"}});
  std::vector<std::string> fit;
  for (const auto all = types.dataset(); const Variable& variable : all->variables())
    if (fits_tensor(variable)) fit.push_back(variable.name);
  EXPECT_THAT(fit, ElementsAre("b", "c", "f", "t"));
}

}  // namespace view_test
}  // namespace batchfs
