#include "tools/show/coastline.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace batchfs {
namespace coastline_test {

std::vector<double> steps(double from, double step, int count) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i) values.push_back(from + i * step);
  return values;
}

// The example of the format's description, in tenths of a degree instead of 1e-5.
TEST(Coastline, ReadsEncodedLines) {
  const std::vector<Polyline> lines = parse_polylines("_p~iF~ps|U_ulL\nnnqC_mqNvxq`@,_p~iF~ps|U");
  ASSERT_EQ(lines.size(), 1u);  // a line of one point is none
  ASSERT_EQ(lines[0].size(), 3u);
  EXPECT_NEAR(lines[0][0].first, 385000, 0.01);
  EXPECT_NEAR(lines[0][0].second, -1202000, 0.01);
  EXPECT_NEAR(lines[0][2].first, 432520, 0.01);
  EXPECT_NEAR(lines[0][2].second, -1264530, 0.01);
}

TEST(Coastline, DamagedTextGivesFewerPoints) {
  EXPECT_TRUE(parse_polylines("").empty());
  EXPECT_TRUE(parse_polylines("~~~~~~~~~~~~~~~~").empty());
  EXPECT_TRUE(parse_polylines("\x01\x02 _p").empty());
}

TEST(Coastline, CoversTheWorld) {
  double west = 0, east = 0, south = 0, north = 0;
  for (const Polyline& line : coastlines())
    for (const auto& [lon, lat] : line) {
      west = std::min(west, lon);
      east = std::max(east, lon);
      south = std::min(south, lat);
      north = std::max(north, lat);
    }
  EXPECT_GT(coastlines().size(), 100u);
  EXPECT_NEAR(west, -180, 0.1);
  EXPECT_NEAR(east, 180, 0.1);
  EXPECT_LT(south, -78);
  EXPECT_GT(north, 83);
  EXPECT_GE(south, -90);
}

/// Is there a point of the path within two units of (x, y)?
bool passes(const std::string& path, double x, double y) {
  long px = 0, py = 0, a = 0, b = 0;
  const char* at = path.c_str();
  for (int read = 0; *at != '\0'; at += read) {
    char letter = 0;
    if (std::sscanf(at, "%c%ld %ld%n", &letter, &a, &b, &read) != 3) return false;
    px = letter == 'M' ? a : px + a;
    py = letter == 'M' ? b : py + b;
    if (std::hypot(static_cast<double>(px) - x, static_cast<double>(py) - y) <= 3) return true;
  }
  return false;
}

// The Cape of Good Hope is near 18.5 E, 34.2 S: on maps from -180 and from 0, either way up.
TEST(Coastline, LiesWhereTheAxesSay) {
  EXPECT_TRUE(passes(coast_path(steps(-179.5, 1, 360), steps(89.5, -1, 180), 720, 360),
                     (18.5 + 180) * 2, (90 + 34.2) * 2));
  EXPECT_TRUE(passes(coast_path(steps(0.5, 1, 360), steps(-89.5, 1, 180), 720, 360), 18.5 * 2,
                     (90 - 34.2) * 2));
  // A map of a part of the world draws only the visible part.
  const std::string part = coast_path(steps(10, 0.5, 40), steps(-40, 0.5, 40), 400, 400);
  EXPECT_TRUE(passes(part, (18.5 - 10 + 0.25) * 20, (40 - 34.2 + 0.25) * 20));
  EXPECT_LT(part.size(), 3000u);
}

TEST(Coastline, IsLeftOutWhereThereIsNoMap) {
  const std::vector<double> good = steps(0, 1, 90);
  EXPECT_EQ(coast_path({5}, good, 10, 10), "");
  EXPECT_EQ(coast_path({1, 2, 2, 3}, good, 10, 10), "");
  EXPECT_EQ(coast_path({1, 3, 2}, good, 10, 10), "");
  EXPECT_EQ(coast_path({0, std::numeric_limits<double>::quiet_NaN()}, good, 10, 10), "");
  EXPECT_EQ(coast_path({0, 1e300}, good, 10, 10), "");
  // Nearly equal neighbours put far places far away, but within the range of numbers.
  EXPECT_LT(coast_path({0, 1e-300}, good, 10, 10).size(), 100'000u);
}

}  // namespace coastline_test
}  // namespace batchfs
