#include "engine/dataset/circle.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace circle_test {

using List = std::vector<std::int64_t>;

/// Does a coordinate of these values and attributes have a period?
bool is_circle(const std::string& name, const std::vector<double>& values,
               const Json& attributes = Json::object()) {
  MemoryData data;
  data.index("x", "<f8", values, attributes);
  const auto dataset = data.dataset();
  Variable index = dataset->variable("x");
  index.name = name;
  return period_of(index, dataset->index_values("x")).has_value();
}

std::vector<double> evenly(double first, double step, int n) {
  std::vector<double> values;
  for (int i = 0; i < n; ++i) values.push_back(first + step * i);
  return values;
}

TEST(Circle, LongitudesAreKnownByAttributesAndName) {
  const std::vector<double> part = {3, 4, 5};
  EXPECT_TRUE(is_circle("lon", part));
  EXPECT_TRUE(is_circle("longitude", part, {{"units", "degrees"}}));
  EXPECT_TRUE(is_circle("x", part, {{"units", "degrees_east"}}));
  EXPECT_TRUE(is_circle("rlon", part, {{"units", "degrees"}, {"standard_name", "grid_longitude"}}));
  EXPECT_TRUE(is_circle("x", part, {{"units", "degrees"}, {"axis", "X"}}));
  EXPECT_FALSE(is_circle("x", part, {{"axis", "X"}}));  // a projection, or an index
  EXPECT_FALSE(is_circle("x", part, {{"units", "m"}, {"axis", "X"}}));
  EXPECT_FALSE(is_circle("lon", part, {{"units", "radians"}}));
  EXPECT_FALSE(is_circle("lat", part, {{"units", "degrees_north"}}));
}

TEST(Circle, OtherAnglesAreOneIfTheyGoOnceRound) {
  EXPECT_TRUE(is_circle("direction", evenly(0, 10, 36), {{"units", "degree"}}));
  EXPECT_TRUE(is_circle("direction", evenly(355, -10, 36), {{"units", "degree"}}));
  EXPECT_FALSE(is_circle("direction", evenly(0, 10, 35), {{"units", "degree"}}));
  EXPECT_FALSE(is_circle("x", evenly(0, 10, 36)));  // without units
  EXPECT_FALSE(is_circle("lat", evenly(-90, 5, 37), {{"units", "degrees"}}));
}

template <class T>
List taken(const char* type, const std::vector<T>& values, double from, double to) {
  MemoryData data;
  data.index("lon", type, values);
  const auto dataset = data.dataset();
  return positions_on_circle(dataset->index_values("lon"), 360, from, to);
}

TEST(Circle, PositionsBeginAtTheFirstEndAndGoUp) {
  EXPECT_EQ(taken<double>("<f8", {0, 90, 180, 270}, 180, 90), (List{2, 3, 0, 1}));
  EXPECT_EQ(taken<double>("<f8", {0, 90, 180, 270}, 100, 0), (List{2, 3, 0}));
  EXPECT_EQ(taken<double>("<f8", {270, 180, 90, 0}, 180, 90),
            (List{1, 0, 3, 2}));  // stored downwards
  EXPECT_EQ(taken<double>("<f8", {180, 270, 0, 90}, 90, 450), (List{3, 0, 1, 2}));
  EXPECT_EQ(taken<std::int16_t>("<i2", {0, 90, 180, 270}, -90, 0), (List{3, 0}));
}

TEST(Circle, AMeridianThatIsStoredTwiceIsTakenOnce) {
  EXPECT_EQ(taken<double>("<f8", {0, 90, 180, 270, 360}, 270, 90), (List{3, 0, 1}));
  EXPECT_EQ(taken<double>("<f8", {0, 90, 180, 270, 360}, 0, 360), (List{0, 1, 2, 3}));
}

TEST(Circle, RoundingOfTheTypeLosesNoEnd) {
  // -10.1 is 349.9: in float32 neither is exact.
  EXPECT_EQ(taken<float>("<f4", {0.1f, 180.1f, 349.9f}, -10.1, 0.1), (List{2, 0}));
  EXPECT_EQ(taken<double>("<f8", {0.1, 180.1, 349.9}, -10.1, 0.1), (List{2, 0}));
  EXPECT_EQ(taken<double>("<f8", {0.1, 180.1, 349.9}, -10.0999, 0.1), (List{0}));
}

/// Do values that are selected from the first to the last cover a circle of 360?
bool covers(const std::vector<double>& values) {
  MemoryData data;
  data.index("x", "<f8", values);
  const auto n = static_cast<std::int64_t>(values.size());
  return covers_circle(data.dataset()->index_values("x"), 360, Positions::range(0, n));
}

TEST(Circle, CoversAllOrAPart) {
  EXPECT_TRUE(covers(evenly(0, 20, 18)));
  EXPECT_TRUE(covers(evenly(-180, 0.25, 1440)));
  EXPECT_TRUE(covers(evenly(350, -10, 36)));
  EXPECT_TRUE(covers(evenly(0, 20, 19)));  // 0 and 360
  EXPECT_TRUE(covers({300, 330, 0, 30, 60, 90, 120, 150, 180, 210, 240, 270}));
  EXPECT_TRUE(covers({0, 100, 170, 260}));  // not evenly spaced
  EXPECT_FALSE(covers(evenly(10, 20, 16)));
  EXPECT_FALSE(covers(evenly(-10, 0.25, 160)));
  EXPECT_FALSE(covers(evenly(40, -5, 8)));
  EXPECT_FALSE(covers({350, 355, 0, 5, 10}));
  EXPECT_FALSE(covers({7}));
}

}  // namespace circle_test
}  // namespace batchfs
