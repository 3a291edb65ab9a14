#include "engine/dataset/dimension_names.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace dimension_names_test {

using testing::ElementsAre;

ArrayMetadata v2(const Json& attributes, const Json& more = Json::object(),
                 const Shape& shape = {2, 3}) {
  Json document = {{"zarr_format", 2},   {"shape", shape},        {"chunks", shape},
                   {"dtype", "<f4"},     {"compressor", nullptr}, {"order", "C"},
                   {"filters", nullptr}, {"fill_value", nullptr}};
  for (const auto& [key, value] : more.items()) document[key] = value;
  return parse_array_v2("v", document, attributes, "v");
}

ArrayMetadata v3(const Json& names) {
  const Shape shape(names.is_null() ? 2 : names.size(), 2);
  Json document = {
      {"zarr_format", 3},
      {"node_type", "array"},
      {"shape", shape},
      {"data_type", "float32"},
      {"chunk_grid", {{"name", "regular"}, {"configuration", {{"chunk_shape", shape}}}}},
      {"chunk_key_encoding", {{"name", "default"}}},
      {"fill_value", 0},
      {"codecs", {{{"name", "bytes"}, {"configuration", {{"endian", "little"}}}}}}};
  if (!names.is_null()) document["dimension_names"] = names;
  return parse_array_v3("v", document, "v");
}

/// The dimension names of an array in both formats, which must agree.
std::vector<std::string> names_of(const Json& names) {
  const Shape shape(names.size(), 2);
  const auto two = dimension_names(v2({{"_ARRAY_DIMENSIONS", names}}, Json::object(), shape));
  EXPECT_EQ(two, dimension_names(v3(names)));
  return two;
}

TEST(DimensionNames, OfFormat2) {
  EXPECT_THAT(dimension_names(v2({{"_ARRAY_DIMENSIONS", {"y", "x"}}})), ElementsAre("y", "x"));
  EXPECT_THAT(dimension_names(v2(Json::object())), ElementsAre("dim_0", "dim_1"));
  // Names that do not fit the shape are ignored.
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
  EXPECT_THAT(dimension_names(v2({{"_nczarr_array", {{"dimrefs", {"/c", "/g/c"}}}}})),
              ElementsAre("c", "c:2"));
}

TEST(DimensionNames, OfFormat3) {
  EXPECT_THAT(dimension_names(v3(nullptr)), ElementsAre("dim_0", "dim_1"));
  EXPECT_THAT(dimension_names(v3({nullptr, nullptr})), ElementsAre("dim_0", "dim_1"));
}

TEST(DimensionNames, AreDistinctWhateverIsStored) {
  EXPECT_THAT(names_of({"time", "c", "c"}), ElementsAre("time", "c", "c:2"));
  EXPECT_THAT(names_of({"c", "c", "c"}), ElementsAre("c", "c:2", "c:3"));
  EXPECT_THAT(names_of({"t", "", ""}), ElementsAre("t", "dim_1", "dim_2"));
  EXPECT_THAT(names_of({"t", nullptr, nullptr}), ElementsAre("t", "dim_1", "dim_2"));
  // Stored names are kept, also if they look generated.
  EXPECT_THAT(names_of({"c", "c", "c:2"}), ElementsAre("c", "c:3", "c:2"));
  EXPECT_THAT(names_of({nullptr, "dim_0"}), ElementsAre("dim_0:2", "dim_0"));
  EXPECT_THAT(names_of({"dim_1", "", "dim_1"}), ElementsAre("dim_1", "dim_1:2", "dim_1:3"));
}

TEST(FirstDimsOfName, NameTheDimensionThatIsRepeated) {
  EXPECT_THAT(first_dims_of_name(v3({"time", "c", "c"})), ElementsAre(0, 1, 1));
  EXPECT_THAT(first_dims_of_name(v3({"", "", "c", nullptr, "c"})), ElementsAre(0, 1, 2, 3, 2));
}

TEST(StoredDimensionNames, AreAsTheyAreStored) {
  EXPECT_THAT(stored_dimension_names(v3({"c", "c", "", nullptr})),
              ElementsAre("c", "c", "", std::nullopt));
  EXPECT_THAT(stored_dimension_names(v2(Json::object())), ElementsAre(std::nullopt, std::nullopt));
}

}  // namespace dimension_names_test
}  // namespace batchfs
