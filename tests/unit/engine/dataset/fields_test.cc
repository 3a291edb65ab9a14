#include "engine/dataset/fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace fields_test {

using testing::ElementsAre;

ArrayMetadata structured(const std::string& dtype, const char* fill = "null") {
  const Json zarray = parse_json(
      R"({"zarr_format": 2, "shape": [4], "chunks": [2], "order": "C", "filters": null,
          "compressor": {"id": "zlib"}, "dtype": )" +
          dtype + R"(, "fill_value": )" + fill + "}",
      "t");
  return parse_array_v2("g/a", zarray, {{"_ARRAY_DIMENSIONS", {"t"}}, {"units", "K"}}, "t");
}

std::vector<std::string> names_of(const ArrayMetadata& array) {
  std::vector<std::string> names;
  for (const auto& [name, field] : field_variables(array)) names.push_back(name);
  return names;
}

TEST(Fields, AreArraysOfTheirOwn) {
  // np.array([(7, 1.5)], [("x", ">i2"), ("y", "<f4")]).tobytes()
  const auto fields =
      field_variables(structured(R"([["x", ">i2"], ["y", "<f4"]])", R"("AAcAAMA/")"));
  ASSERT_EQ(fields.size(), 2u);
  const auto& [name, x] = fields[0];
  EXPECT_EQ(name, ".x");
  EXPECT_EQ(x.type, make_type(Kind::signed_int, 2));
  EXPECT_EQ(x.fill_value, (std::vector<std::byte>{std::byte{7}, std::byte{0}}));
  EXPECT_TRUE(x.fill_value_json.is_null());
  EXPECT_EQ(x.attributes, Json({{"_ARRAY_DIMENSIONS", {"t"}}}));
  EXPECT_EQ(x.path, "g/a");
  ASSERT_EQ(x.codecs.size(), 3u);
  EXPECT_EQ(x.codecs[0].name, "record_member");
  EXPECT_EQ(x.codecs[0].configuration["member"], "x");
  EXPECT_EQ(fields[1].second.type, float32());
}

TEST(Fields, OfFieldsOfFields) {
  EXPECT_THAT(
      names_of(structured(R"([["x", "<i2"], ["p", [["q", [["r", "<i2"], ["s", "|S3"]]]]]])")),
      ElementsAre(".x", ".p.q.r", ".p.q.s"));
}

TEST(Fields, OfShardsAreTakenInside) {
  const Json document = parse_json(R"({"zarr_format": 3, "node_type": "array", "shape": [8],
      "data_type": {"name": "struct", "configuration": {"fields": [["x", "int16"], ["y", "int16"]]}},
      "fill_value": {"x": 1, "y": 2}, "chunk_key_encoding": {"name": "default"},
      "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [8]}},
      "codecs": [{"name": "sharding_indexed", "configuration": {"chunk_shape": [4], "codecs": [
        {"name": "sharding_indexed", "configuration": {"chunk_shape": [2], "codecs": [
          {"name": "bytes", "configuration": {"endian": "little"}}]}}]}}]})",
                                   "t");
  const auto fields = field_variables(parse_array_v3("a", document, "t"));
  ASSERT_EQ(fields.size(), 2u);
  const std::vector<CodecSpec>& codecs = fields[1].second.codecs;
  ASSERT_EQ(codecs.size(), 1u);
  const Json& inner = codecs[0].configuration["codecs"][0]["configuration"]["codecs"];
  ASSERT_EQ(inner.size(), 2u);
  EXPECT_EQ(inner[0]["name"], "record_member");
  EXPECT_EQ(inner[1]["name"], "bytes");
}

TEST(Fields, ThatCannotBeVariables) {
  EXPECT_THAT(names_of(structured("\"<i2\"")), ElementsAre());
  // Names that cannot be file names.
  EXPECT_THAT(
      names_of(structured(R"([["a/b", "<i2"], ["", "<i2"], ["\n", "<i2"], ["ok", "<i2"]])")),
      ElementsAre(".ok"));
  const auto fields = field_variables(structured(R"([["many", "<i2", [3]]])"));
  ASSERT_EQ(fields.size(), 1u);
  EXPECT_THAT(fields[0].second.unsupported, testing::HasSubstr("a field that holds an array"));
  std::string many = "[";
  for (int i = 0; i < 65; ++i) many += fmt::format(R"({}["f{}", "<i2"])", i == 0 ? "" : ", ", i);
  EXPECT_THAT(names_of(structured(many + "]")), ElementsAre());
}

TEST(Fields, AreFoundByTheirPaths) {
  Hierarchy hierarchy;
  hierarchy.arrays.emplace("g/a", structured(R"([["x", "<i2"], ["p", [["q", "<i2"]]]])"));
  hierarchy.arrays.emplace("", structured(R"([["x", "<i2"]])"));
  EXPECT_EQ(array_of_field(hierarchy, "g/a.x"), &hierarchy.arrays.at("g/a"));
  EXPECT_EQ(array_of_field(hierarchy, "g/a.p.q"), &hierarchy.arrays.at("g/a"));
  EXPECT_EQ(array_of_field(hierarchy, "values.x"), &hierarchy.arrays.at(""));
  for (const char* path : {"g/a", "g/a.", "g/a.p", "g/a.z", "g.x", ".x", "", "g/a.x.y"})
    EXPECT_EQ(array_of_field(hierarchy, path), nullptr) << path;
}

}  // namespace fields_test
}  // namespace batchfs
