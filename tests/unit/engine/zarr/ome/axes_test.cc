#include "engine/zarr/ome/axes.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/zarr/ome/ome_data.h"

namespace batchfs {
namespace axes_test {

using testing::HasSubstr;
using Type = ArrayAxis::Type;

TEST(OmeAxes, HaveNamesTypesAndUnits) {
  const auto axes = ome_data::parsed(
      R"([{"name": "c", "type": "channel", "unit": null}, {"name": "f", "type": "frequency"},
          {"name": "x", "type": "space", "unit": "micrometer"}])",
      parse_axes);
  ASSERT_EQ(axes.size(), 3u);
  EXPECT_EQ(axes[0].type, Type::channel);
  EXPECT_EQ(axes[0].unit, "");
  EXPECT_EQ(axes[1].type, Type::other);
  EXPECT_EQ(axes[2].unit, "micrometer");
  EXPECT_FALSE(axes[2].has_coordinate());
}

TEST(OmeAxes, OfVersion03AreNames) {
  const auto axes = ome_data::parsed(R"(["t", "z", "lambda"])", parse_axes);
  ASSERT_EQ(axes.size(), 3u);
  EXPECT_EQ(axes[0].type, Type::time);
  EXPECT_EQ(axes[1].type, Type::space);
  EXPECT_EQ(axes[2].type, Type::other);
  EXPECT_EQ(five_axes().size(), 5u);
  EXPECT_EQ(five_axes()[1].type, Type::channel);
}

TEST(OmeAxes, ThatAreWrongAreNamed) {
  const auto why = [](const char* text) { return ome_data::refusal(text, parse_axes); };
  EXPECT_EQ(why("[]"), "v: the list is empty");
  EXPECT_EQ(why("{}"), "v: expected a list");
  EXPECT_EQ(why("[[]]"), "v[0]: expected a string");
  EXPECT_EQ(why(R"([{"type": "space"}])"), "v[0]: the key 'name' is missing");
  EXPECT_EQ(why(R"(["x", ""])"), "v[1]: the name is empty");
  EXPECT_EQ(why(R"(["x", {"name": "x"}])"), "v[1].name: 'x' is given twice");
  EXPECT_EQ(why(R"([{"name": "x", "unit": 3}])"), "v[0].unit: expected a string");
  EXPECT_THAT(why("[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]"), HasSubstr("v: 17 axes; at most 16"));
}

}  // namespace axes_test
}  // namespace batchfs
