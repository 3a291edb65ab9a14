#include "fs/formats/picture_axes.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/view/assembled.h"

namespace batchfs {
namespace picture_axes_test {

/// The names of the lines and the columns, and of the colours.
Names axes(MemoryData& data,
           const std::string& view_json = R"({"window": {"s": 1}, "variables": ["a"]})") {
  const auto view = parse_view(data.dataset(), view_json);
  const TensorSpec& tensor = view->tensors()[0];
  const PictureAxes found = picture_axes(*view, tensor, tensor.shape);
  Names names = {tensor.dims[found.lines], tensor.dims[found.columns]};
  if (found.colours) names.push_back(tensor.dims[*found.colours]);
  EXPECT_EQ(found.others.size() + (found.colours ? 1 : 0) + 3, tensor.dims.size());
  return names;
}

struct Case {
  Names dims;
  Shape shape;
  Names expected;
  const char* dtype = "<f4";
};

TEST(PictureAxes, ByNameAndBySize) {
  const std::vector<Case> cases = {
      {{"s", "level", "lat", "lon"}, {1, 13, 32, 64}, {"lat", "lon"}},
      {{"s", "lat", "lon", "level"}, {1, 32, 64, 137}, {"lat", "lon"}},
      {{"s", "longitude", "latitude"}, {1, 64, 32}, {"latitude", "longitude"}},
      {{"s", "y", "x", "time"}, {1, 20, 20, 500}, {"y", "x"}},
      {{"s", "height", "width", "channel"}, {1, 64, 64, 3}, {"height", "width"}},
      {{"s", "height", "lat", "lon"}, {1, 40, 20, 20}, {"lat", "lon"}},
      // Names without a meaning: short last ones are channels.
      {{"s", "dim_1", "dim_2", "dim_3"}, {1, 64, 64, 3}, {"dim_1", "dim_2"}},
      {{"s", "dim_1", "dim_2", "dim_3"}, {1, 3, 64, 64}, {"dim_2", "dim_3"}},
      {{"s", "dim_1", "dim_2", "dim_3"}, {1, 100, 10, 20}, {"dim_2", "dim_3"}},
      {{"s", "dim_1", "dim_2", "dim_3"}, {1, 512, 512, 30}, {"dim_1", "dim_2"}},
      // Nothing better: the last two.
      {{"s", "channel", "time"}, {1, 5, 100}, {"channel", "time"}},
      {{"s", "lat", "level"}, {1, 32, 10}, {"lat", "level"}},
      {{"s", "level", "lon"}, {1, 10, 32}, {"level", "lon"}},
      // Colours.
      {{"s", "y", "x", "c"}, {1, 8, 8, 3}, {"y", "x", "c"}, "|u1"},
      {{"s", "y", "x", "c"}, {1, 8, 8, 4}, {"y", "x", "c"}, "|u1"},
      {{"s", "channel", "y", "x"}, {1, 3, 8, 8}, {"y", "x", "channel"}, "|u1"},
      {{"s", "dim_1", "dim_2", "dim_3"}, {1, 64, 64, 3}, {"dim_1", "dim_2", "dim_3"}, "|u1"},
      {{"s", "y", "x", "c"}, {1, 8, 8, 5}, {"y", "x"}, "|u1"},
      {{"s", "y", "x", "c"}, {1, 8, 8, 3}, {"y", "x"}, "<u2"},
      {{"s", "level", "y", "x"}, {1, 3, 8, 8}, {"y", "x"}, "|u1"},
  };
  for (const Case& each : cases) {
    MemoryData data;
    data.declare("a", each.dtype, each.dims, each.shape, each.shape);
    EXPECT_EQ(axes(data), each.expected)
        << ::testing::PrintToString(each.dims) << ::testing::PrintToString(each.shape);
  }
}

TEST(PictureAxes, ByTheAttributesOfCoordinates) {
  MemoryData data;
  data.declare("a", "<f4", {"s", "down", "across", "many"}, {1, 2, 2, 90}, {1, 2, 2, 90});
  data.index<double>("down", "<f8", {1, 2}, {{"axis", "Y"}});
  data.index<double>("across", "<f8", {1, 2}, {{"standard_name", "projection_x_coordinate"}});
  EXPECT_EQ(axes(data), (Names{"down", "across"}));
}

TEST(PictureAxes, AStackIsNoMap) {
  MemoryData data;
  data.declare("a", "|u1", {"s", "p", "q"}, {1, 30, 30}, {1, 30, 30})
      .declare("b", "|u1", {"s", "p", "q"}, {1, 30, 30}, {1, 30, 30});
  data.declare("c", "|u1", {"s", "p", "q"}, {1, 30, 30}, {1, 30, 30});
  EXPECT_EQ(
      axes(
          data,
          R"({"window": {"s": 1}, "tensors": {"x": {"variables": ["a", "b", "c"], "stack": "channel",
      "dims": ["p", "q", "channel"]}}})"),
      (Names{"p", "q"}));
}

TEST(PlaneAxes, OfAnArrayWithoutSamples) {
  const PlaneAxes map = plane_axes({{"time"}, {"lon"}, {"lat"}}, {5, 8, 4});
  EXPECT_EQ(map.lines, 2u);
  EXPECT_EQ(map.columns, 1u);
  const PlaneAxes two = plane_axes({{"time"}, {"lat"}}, {5, 8});
  EXPECT_EQ(two.lines, 1u);
  EXPECT_EQ(two.columns, 0u);
}

TEST(PlaneAxes, DegreesAreByAttributesOrByName) {
  EXPECT_TRUE(is_latitude({"j", {{"units", "degrees_north"}}}));
  EXPECT_TRUE(is_latitude({"lat"}));
  EXPECT_FALSE(is_latitude({"lat", {{"units", "m"}}}));
  EXPECT_TRUE(is_longitude({"i", {{"standard_name", "longitude"}}}));
  EXPECT_TRUE(is_longitude({"longitude"}));
  EXPECT_FALSE(is_longitude({"x"}));
}

TEST(PlaneAxes, LinesGoNorthwardsByTheCoordinate) {
  MemoryData data;
  data.index<double>("lat", "<f8", {-10, 0, 10})
      .index<float>("latitude", "<f4", {10, 0})
      .index<double>("level", "<f8", {0, 1});
  const auto dataset = data.dataset();
  EXPECT_TRUE(goes_north("lat", dataset->index_values("lat")));
  EXPECT_FALSE(goes_north("latitude", dataset->index_values("latitude")));
  EXPECT_FALSE(goes_north("level", dataset->index_values("level")));
}

}  // namespace picture_axes_test
}  // namespace batchfs
