#include "fs/formats/pixel_means.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "fs/formats/preview.h"

namespace batchfs {
namespace pixel_means_test {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

PixelMeans means(const std::vector<float>& values, std::int64_t lines, std::int64_t columns,
                 std::int64_t average) {
  MapGrid grid;
  grid.type = float32();
  grid.lines = lines;
  grid.columns = columns;
  grid.line_step = columns;
  grid.maps = 1;
  grid.average = average;
  return pixel_means(grid, 0, std::as_bytes(std::span(values)));
}

TEST(PixelMeans, AverageTheValidElementsOfAPixel) {
  // 2 x 5 elements, two either way a pixel: the last column of pixels has one element a line.
  const PixelMeans found = means({1, 2, 3, kNaN, 10, 3, 4, kNaN, INFINITY, 20}, 2, 5, 2);
  ASSERT_EQ(found.values.size(), 3u);
  EXPECT_EQ(found.values[0], 2.5);
  EXPECT_EQ(found.values[1], 3);
  EXPECT_EQ(found.values[2], 15);
  EXPECT_EQ(found.least, 2.5);
  EXPECT_EQ(found.most, 15);
}

TEST(PixelMeans, OfMissingValuesAreMissing) {
  const PixelMeans found = means({kNaN, kNaN, 1, kNaN}, 2, 2, 1);
  EXPECT_TRUE(std::isnan(found.values[0]));
  EXPECT_EQ(found.values[2], 1);
  EXPECT_EQ(ColourScale(found).colour(found.values[0]), Preview::kMissing);
}

TEST(ColourScale, IsAroundZeroWhereBothSidesHaveAFairPart) {
  const ColourScale both(means({-3, 1, 0, 2}, 2, 2, 1));
  EXPECT_TRUE(both.is_diverging());
  EXPECT_EQ(both.low, -3);
  EXPECT_EQ(both.high, 3);
  EXPECT_EQ(both.colour(-3), Preview::kFirstDiverging);
  EXPECT_EQ(both.colour(3), Preview::kLastDiverging);
  const ColourScale one(means({-0.1F, 1, 0, 2}, 2, 2, 1));
  EXPECT_FALSE(one.is_diverging());
  EXPECT_EQ(one.colour(2), Preview::kLastColour);
}

TEST(ColourScale, OfOneValueAndOfTheLargest) {
  EXPECT_EQ(ColourScale(means({5, 5}, 1, 2, 1)).colour(5),
            ColourScale(means({5, 5}, 1, 2, 1)).at(0.5));
  PixelMeans far;
  far.least = -std::numeric_limits<double>::max();
  far.most = std::numeric_limits<double>::max();
  EXPECT_EQ(ColourScale(far).colour(far.most), Preview::kLastDiverging);
}

}  // namespace pixel_means_test
}  // namespace batchfs
