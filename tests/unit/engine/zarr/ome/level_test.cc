#include "engine/zarr/ome/level.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/zarr/ome/ome_data.h"

namespace batchfs {
namespace level_test {

using testing::HasSubstr;

OmeImage pyramid() {
  OmeImage image;
  for (const double scale : {0.25, 0.5, 1.0}) {
    ArrayAxis c, x;
    c.name = "c";
    x.name = "x";
    x.unit = "micrometer";
    x.has_values = true;
    x.scale = scale;
    image.levels.push_back({"a", {c, x}});
  }
  return image;
}

LevelChoice of_view(const std::string& text) {
  return ome_data::parsed(text, [](const JsonRef& json) { return parse_level(json); });
}

TEST(Level, IsTheNearestByRatio) {
  const OmeImage image = pyramid();
  const auto level = [&](const std::string& text) {
    return choose_level(image, parse_level(text, "--level"));
  };
  EXPECT_EQ(level("0"), 0u);
  EXPECT_EQ(level("2"), 2u);
  EXPECT_EQ(level("x=0.5um"), 1u);
  EXPECT_EQ(level("x=0.5"), 1u);
  EXPECT_EQ(level("x=350nm"), 0u);
  EXPECT_EQ(level("x=360 nm"), 1u);
  EXPECT_EQ(level("x=1m"), 2u);
  EXPECT_EQ(choose_level(image, of_view(R"({"resolution": {"x": "0.9 um"}})")), 2u);
  EXPECT_EQ(choose_level(image, of_view("1.0")), 1u);
}

TEST(Level, ThatIsWrongIsNamed) {
  const OmeImage image = pyramid();
  const auto why = [&](const std::string& text) {
    return ome_data::thrown_by([&] { choose_level(image, parse_level(text, "--level")); }).why();
  };
  EXPECT_EQ(why("3"), "level: there is no level 3; the image has 3 levels, from 0 to 2");
  for (const char* text : {"", "x", "x=", "=1", "x=um", "x=-1um", "x=0", "x=inf", "01", "x=1,,"})
    EXPECT_THAT(why(text), HasSubstr("neither the number of a level nor a resolution")) << text;
  EXPECT_THAT(why("c=1"), HasSubstr("no scale along 'c'"));
  EXPECT_THAT(why("y=1"), HasSubstr("no axis 'y'"));
  EXPECT_THAT(why("x=1s"), HasSubstr("which 's' cannot be compared with"));
  EXPECT_THAT(why("x=1px"), HasSubstr("'px' is not a unit"));
  EXPECT_EQ(ome_data::refusal(R"({"resolution": {"x": -1}})",
                              [](const JsonRef& json) { return parse_level(json); })
                .substr(0, 14),
            "v.resolution.x");
}

}  // namespace level_test
}  // namespace batchfs
