#include "engine/zarr/ome/image.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/zarr/ome/ome_data.h"

namespace batchfs {
namespace image_test {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* k04 = R"({"multiscales": [{"version": "0.4", "name": "cells",
  "axes": [{"name": "c", "type": "channel"}, {"name": "x", "type": "space", "unit": "nanometer"}],
  "datasets": [
    {"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [1, 2]}]},
    {"path": "1", "coordinateTransformations": [{"type": "scale", "scale": [1, 4]},
                                                {"type": "translation", "translation": [0, 1]}]}],
  "coordinateTransformations": [{"type": "scale", "scale": [1, 10]}]}],
  "omero": {"channels": [{"label": "a"}, {"label": "b"}]}})";

constexpr const char* k06 = R"({"ome": {"version": "0.6", "multiscales": [{
  "coordinateSystems": [{"name": "world", "axes": {}}, {"name": "own", "axes": ["y", "x"]}],
  "datasets": [{"path": "s0", "coordinateTransformations": [
    {"type": "scale", "scale": [3, 4], "input": {"path": "s0"}, "output": {"name": "own"}}]}],
  "coordinateTransformations": [
    {"type": "rotation", "input": {"name": "own"}, "output": {"name": "world"}}]}]}})";

Json changed(const char* text, const std::string& pointer, const Json& value) {
  Json json = parse_json(text, "test");
  json[Json::json_pointer(pointer)] = value;
  return json;
}

OmeImage image_of(const Json& attributes) { return parse_image(*find_ome(attributes, "g"), "g"); }

std::string why(const Json& attributes) {
  try {
    image_of(attributes);
  } catch (const Error& error) {
    return error.why();
  }
  return "no error";
}

TEST(OmeImage, HasLevelsWithCoordinates) {
  const OmeImage image = image_of(parse_json(k04, "test"));
  EXPECT_EQ(image.name, "cells");
  ASSERT_EQ(image.levels.size(), 2u);
  EXPECT_EQ(image.levels[1].path, "g/1");
  const ArrayAxis& x = image.levels[1].axes[1];
  EXPECT_EQ(x.scale, 40);
  EXPECT_EQ(x.translation, 10);
  EXPECT_EQ(x.unit, "nanometer");
  EXPECT_FALSE(image.levels[1].axes[0].has_values);
  EXPECT_THAT(*image.levels[0].axes[0].labels, ElementsAre("a", "b"));
  EXPECT_TRUE(image.notes.empty());
  EXPECT_GT(memory_of(image), 500u);
}

TEST(OmeImage, OfVersion06IsInTheCoordinateSystemOfItsLevels) {
  const OmeImage image = image_of(parse_json(k06, "test"));
  EXPECT_EQ(image.levels[0].axes[0].name, "y");
  EXPECT_EQ(image.levels[0].axes[1].scale, 4);
  EXPECT_THAT(image.notes, ElementsAre(HasSubstr("multiscales[0].coordinateTransformations")));
  const std::string system = "/ome/multiscales/0/datasets/0/coordinateTransformations/0/output";
  EXPECT_THAT(why(changed(k06, system, {{"name", "none"}})),
              HasSubstr("the coordinate system of the levels is not among them"));
  Json nameless = parse_json(k06, "test");
  nameless["ome"]["multiscales"][0]["datasets"][0]["coordinateTransformations"][0].erase("output");
  EXPECT_THAT(why(nameless), HasSubstr("the levels name none"));
  EXPECT_THAT(why(changed(k06, system, {{"name", "world"}})),
              HasSubstr("coordinateSystems[0].axes: expected a list"));
  EXPECT_THAT(why(changed(k06, "/ome/multiscales/0/datasets/0/coordinateTransformations",
                          Json::array({1, 2}))),
              HasSubstr("2 elements; at most 1"));
}

TEST(OmeImage, WithoutTransformationsHasNoCoordinates) {
  Json json = parse_json(k04, "test");
  json["multiscales"][0]["datasets"][0].erase("coordinateTransformations");
  json["multiscales"][0]["datasets"][1].erase("coordinateTransformations");
  const OmeImage image = image_of(json);
  EXPECT_FALSE(image.levels[0].axes[1].has_values);
  EXPECT_THAT(image.notes, ElementsAre(HasSubstr("no coordinates: multiscales[0].datasets[0]")));
}

TEST(OmeImage, ThatIsWrongIsNamed) {
  EXPECT_EQ(why(changed(k04, "/multiscales/0/axes", 3)), "multiscales[0].axes: expected a list");
  EXPECT_EQ(why(changed(k04, "/multiscales/0/datasets", Json::array())),
            "multiscales[0].datasets: the list is empty");
  EXPECT_EQ(why(changed(k04, "/multiscales/0/datasets/0/path", "../0")),
            "multiscales[0].datasets[0].path: '../0' is not the path of a node in this group");
  EXPECT_EQ(why(parse_json(R"({"ome": {"multiscales": []}})", "test")),
            "ome.multiscales: the list is empty");
  EXPECT_EQ(why(parse_json(R"({"ome": {"multiscales": [7]}})", "test")),
            "ome.multiscales[0]: expected an object");
}

}  // namespace image_test
}  // namespace batchfs
