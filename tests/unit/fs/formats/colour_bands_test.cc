#include "fs/formats/colour_bands.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace batchfs {
namespace colour_bands_test {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
using Bands = std::array<std::size_t, 3>;

TEST(ColourBands, ByTheirNames) {
  EXPECT_EQ(colour_bands({"red", "green", "blue"}), (Bands{0, 1, 2}));
  EXPECT_EQ(colour_bands({"nir", "B", "G", "R"}), (Bands{3, 2, 1}));
  EXPECT_EQ(colour_bands({"b02", "b03", "b04", "b08"}), (Bands{2, 1, 0}));
  EXPECT_EQ(colour_bands({"r10m/B4_0", "r10m/B3_0", "s2:B2_0"}), (Bands{0, 1, 2}));
  EXPECT_EQ(colour_bands({"Red_0", "Red_1", "Green_0", "Green_1", "Blue_0", "Blue_1"}),
            (Bands{0, 2, 4}));
  for (const std::vector<std::string>& names :
       std::vector<std::vector<std::string>>{{},
                                             {"red", "green"},
                                             {"red", "g", "b"},
                                             {"b02", "b03", "b4"},
                                             {"t2m", "u", "v"},
                                             {"infrared", "green", "blue"}})
    EXPECT_EQ(colour_bands(names), std::nullopt);
}

TEST(ColourStretch, LeavesOutTheEnds) {
  std::vector<PixelMeans> bands(2);
  for (int i = 0; i <= 50; ++i) bands[0].values.push_back(i);
  for (int i = 51; i <= 100; ++i) bands[1].values.push_back(i);
  bands[1].values.push_back(kNaN);
  const ColourStretch stretch = ColourStretch::of(bands);
  EXPECT_EQ(stretch.low, 2);
  EXPECT_EQ(stretch.high, 98);
  EXPECT_EQ(stretch.part(-1e300), 0);
  EXPECT_EQ(stretch.part(50), 0.5);
  EXPECT_EQ(stretch.part(1e300), 1);
  EXPECT_EQ(stretch.part(kNaN), 0);
}

TEST(ColourStretch, OfFewAndOfLargeValues) {
  EXPECT_EQ(ColourStretch::of({}).part(1), 0.5);
  PixelMeans one;
  one.values = {kNaN, 7, 7};
  EXPECT_EQ(ColourStretch::of({&one, 1}).part(7), 0.5);
  const ColourStretch whole{-std::numeric_limits<double>::max(),
                            std::numeric_limits<double>::max()};
  EXPECT_EQ(whole.part(0), 0.5);
}

}  // namespace colour_bands_test
}  // namespace batchfs
