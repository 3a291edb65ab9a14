#include "engine/dataset/dataset.h"

#include <gmock/gmock.h>

#include "engine/dataset/read_variable.h"
#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace dataset_test {

using testing::ElementsAre;
using testing::HasSubstr;

using DimList = std::vector<std::pair<std::string, std::int64_t>>;

ArrayMetadata v2(const Json& attributes, const Json& more = Json::object(),
                 const Shape& shape = {2, 3}) {
  Json document = {{"zarr_format", 2},   {"shape", shape},        {"chunks", shape},
                   {"dtype", "<f4"},     {"compressor", nullptr}, {"order", "C"},
                   {"filters", nullptr}, {"fill_value", nullptr}};
  for (const auto& [key, value] : more.items()) document[key] = value;
  return parse_array_v2("v", document, attributes, "v");
}

TEST(DimensionNames, OfFormat2) {
  EXPECT_THAT(dimension_names(v2({{"_ARRAY_DIMENSIONS", {"y", "x"}}})), ElementsAre("y", "x"));
  EXPECT_THAT(dimension_names(v2(Json::object())), ElementsAre("dim_0", "dim_1"));
  // What does not fit the shape names nothing.
  EXPECT_THAT(dimension_names(v2({{"_ARRAY_DIMENSIONS", {"y"}}})), ElementsAre("dim_0", "dim_1"));
  EXPECT_THAT(dimension_names(v2({{"_ARRAY_DIMENSIONS", {"y", 5}}})),
              ElementsAre("dim_0", "dim_1"));
  EXPECT_THAT(dimension_names(v2({{"_ARRAY_DIMENSIONS", "yx"}})), ElementsAre("dim_0", "dim_1"));
  EXPECT_THAT(dimension_names(v2(Json::object(), Json::object(), Shape{})), ElementsAre());
}

TEST(DimensionNames, OfNczarr) {
  EXPECT_THAT(dimension_names(
                  v2(Json::object(), {{"_NCZARR_ARRAY", {{"dimrefs", {"/lat", "/group/lon"}}}}})),
              ElementsAre("lat", "lon"));
  EXPECT_THAT(
      dimension_names(v2({{"_nczarr_array", {{"dimension_references", {"/lat", "/lon"}}}}})),
      ElementsAre("lat", "lon"));
  EXPECT_THAT(dimension_names(v2({{"_nczarr_array", {{"dimrefs", 7}}}})),
              ElementsAre("dim_0", "dim_1"));
}

TEST(DimensionNames, OfFormat3) {
  Json document = parse_json(
      R"({"zarr_format": 3, "node_type": "array", "shape": [2, 3], "data_type": "float32",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3]}},
    "chunk_key_encoding": {"name": "default"}, "fill_value": 0,
    "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}], "dimension_names": ["y", null]})",
      "v");
  EXPECT_THAT(dimension_names(parse_array_v3("v", document, "v")), ElementsAre("y", "dim_1"));
  document.erase("dimension_names");
  EXPECT_THAT(dimension_names(parse_array_v3("v", document, "v")), ElementsAre("dim_0", "dim_1"));
}

TEST(Dataset, PutsDataBeforeCoordinatesAndDimensionsInThatOrder) {
  MemoryData data;
  data.index<double>("a_first_by_name", "<f8", {1, 2})
      .declare("t2m", "<f4", {"time", "lat"}, {4, 3}, {1, 3}, {{"coordinates", "height  station"}})
      .declare("height", "<f4", {}, {}, {})
      .declare("station", "<f4", {"lat"}, {3}, {3})
      .declare("mask", "<f4", {"lat", "a_first_by_name"}, {3, 2}, {3, 2})
      .index<double>("time", "<f8", {0, 1, 2, 3});
  const auto dataset = data.dataset();
  std::vector<std::string> names;
  for (const Variable& variable : dataset->variables()) names.push_back(variable.name);
  // Within the groups: by path, as the hierarchy is sorted.
  EXPECT_THAT(names, ElementsAre("mask", "t2m", "a_first_by_name", "height", "station", "time"));
  EXPECT_FALSE(dataset->variable("t2m").is_coordinate);
  EXPECT_TRUE(dataset->variable("height").is_coordinate);
  EXPECT_EQ(dataset->dims(), (DimList{{"lat", 3}, {"a_first_by_name", 2}, {"time", 4}}));
  EXPECT_EQ(dataset->dim_size("time"), 4);
}

TEST(Dataset, HoldsOneGroupOnly) {
  MemoryData data;
  data.hierarchy.groups["a"] = {"a", {{"title", "inner"}}};
  data.declare("v", "<f4", {"x"}, {2}, {2})
      .declare("a/v", "<f4", {"x"}, {5}, {5})
      .declare("a/b/w", "<f4", {"x"}, {7}, {7})
      .declare("ab", "<f4", {"x"}, {2}, {2});
  const Dataset root(data.store, data.hierarchy), inner(data.store, data.hierarchy, "a");
  EXPECT_EQ(root.variables().size(), 2u);
  EXPECT_EQ(root.dim_size("x"), 2);
  ASSERT_EQ(inner.variables().size(), 1u);
  EXPECT_EQ(inner.variables()[0].name, "v");
  EXPECT_EQ(inner.dim_size("x"), 5);
  EXPECT_EQ(inner.attributes(), (Json{{"title", "inner"}}));
}

TEST(Dataset, OfAStoreThatIsAnArray) {
  MemoryData data;
  data.add<float>("", "<f4", {"x"}, {2}, {1, 2});
  const Dataset dataset(data.store, data.hierarchy);
  ASSERT_EQ(dataset.variables().size(), 1u);
  EXPECT_EQ(values_of<float>(read_variable(dataset.variable("values"))),
            (std::vector<float>{1, 2}));
}

TEST(Dataset, NamesTheNearest) {
  const auto dataset = MemoryData().declare("temperature", "<f4", {"time"}, {2}, {2}).dataset();
  const Error variable = error_of([&] { dataset->variable("temprature"); });
  EXPECT_EQ(variable.code(), ErrorCode::not_found);
  EXPECT_THAT(variable.why(), HasSubstr("did you mean 'temperature'?"));
  EXPECT_THAT(error_of([&] { dataset->dim_size("tim"); }).why(), HasSubstr("did you mean 'time'?"));
  EXPECT_THAT(error_of([&] { dataset->dim_size("zzzzzz"); }).why(), HasSubstr("there is time"));
  EXPECT_EQ(dataset->find("zz"), nullptr);
}

TEST(Dataset, LengthsThatContradictAreAnError) {
  const Error error = error_of([] {
    MemoryData()
        .declare("a", "<f4", {"x"}, {2}, {2})
        .declare("b", "<f4", {"x"}, {3}, {3})
        .dataset();
  });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_THAT(error.why(), testing::AllOf(HasSubstr("'x'"), HasSubstr("'a'"), HasSubstr("'b'")));
}

TEST(Dataset, IndexValuesAreDecodedAndReadOnce) {
  MemoryData data;
  data.index<std::int32_t>("time", "<i4", {0, 6}, {{"units", "hours since 2000-01-01"}});
  const auto dataset = data.dataset();
  ASSERT_NE(dataset->index_of("time"), nullptr);
  // numpy.array(["2000-01-01T00", "2000-01-01T06"], "M8[ns]").astype("i8")
  EXPECT_EQ(values_of<std::int64_t>(dataset->index_values("time")),
            (std::vector<std::int64_t>{946684800000000000, 946706400000000000}));
  data.store->objects.clear();
  EXPECT_EQ(dataset->index_values("time").shape, Dims{2});
}

TEST(Dataset, DimensionsWithoutCoordinateHaveNoIndex) {
  MemoryData data;
  data.declare("v", "<f4", {"x", "y"}, {2, 2}, {2, 2})
      .declare("y", "<f4", {"y", "x"}, {2, 2}, {2, 2});
  const auto dataset = data.dataset();
  EXPECT_EQ(dataset->index_of("x"), nullptr);
  EXPECT_EQ(dataset->index_of("y"), nullptr);
  const Error error = error_of([&] { dataset->index_values("x"); });
  EXPECT_EQ(error.code(), ErrorCode::not_found);
  EXPECT_THAT(error.why(), HasSubstr("'#0:#4'"));
}

TEST(Dataset, OneArrayThatCannotBeReadSpoilsNothing) {
  MemoryData data;
  data.add<float>("good", "<f4", {"x"}, {2}, {1, 2})
      .declare("bad", "<i2", {"x"}, {2}, {2}, {{"scale_factor", "x"}});
  const auto dataset = data.dataset();
  EXPECT_EQ(dataset->variable("bad").array, nullptr);
  EXPECT_THAT(dataset->variable("bad").unsupported, HasSubstr("scale_factor"));
  const Error error = error_of([&] { read_variable(dataset->variable("bad")); });
  EXPECT_EQ(error.code(), ErrorCode::not_supported);
  EXPECT_EQ(error.where(), "bad");
  EXPECT_EQ(values_of<float>(read_variable(dataset->variable("good"))), (std::vector<float>{1, 2}));
}

}  // namespace dataset_test
}  // namespace batchfs
