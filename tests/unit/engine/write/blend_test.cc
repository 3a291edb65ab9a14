#include "engine/write/blend.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace batchfs {
namespace blend_test {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(Blend, IsTheWeightedMeanWhereBoxesOverlap) {
  const std::vector<float> left{1, 2, 3, 4}, right{10, 20, 30, 40};
  const std::vector<double> down{3, 1}, up{1, 3};
  const std::vector<WeightedBox<float>> boxes{
      {{{0, 0}, {2, 2}}, left.data(), {nullptr, down.data()}},
      {{{0, 1}, {2, 2}}, right.data(), {nullptr, up.data()}}};
  std::vector<float> out(8);
  blend<float>(boxes, {2, 4}, -1, out.data());
  EXPECT_EQ(out, (std::vector<float>{1, 6, 20, -1, 3, 17, 40, -1}));
}

TEST(Blend, WeightsOfAllDimensionsAreMultiplied) {
  const std::vector<double> values{8, 4};
  const std::vector<double> half{0.5}, quarter{0.25}, ones{1, 1};
  const std::vector<WeightedBox<double>> boxes{
      {{{1, 0, 0}, {1, 1, 2}}, values.data(), {half.data(), quarter.data(), ones.data()}},
      {{{1, 0, 1}, {1, 1, 1}}, values.data(), {half.data(), half.data(), nullptr}}};
  std::vector<double> out(4, 7);
  blend<double>(boxes, {2, 1, 2}, 0, out.data());
  EXPECT_EQ(out, (std::vector<double>{0, 0, 8, (4 * 0.125 + 8 * 0.25) / 0.375}));
}

TEST(Blend, MeansOfEqualValuesAreTheValues) {
  std::vector<double> values(64);
  std::vector<double> ramp(64), back(64);
  for (std::size_t i = 0; i < 64; ++i) {
    values[i] = 1.0 / (3 + static_cast<double>(i));
    ramp[i] = std::pow(std::sin(1.57 * (static_cast<double>(i) + 0.5) / 64), 2);
    back[i] = 1 - ramp[i] / 3;
  }
  const std::vector<WeightedBox<double>> boxes{{{{0}, {64}}, values.data(), {ramp.data()}},
                                               {{{0}, {64}}, values.data(), {back.data()}}};
  std::vector<double> out(64);
  blend<double>(boxes, {64}, 0, out.data());
  EXPECT_EQ(out, values);
}

TEST(Blend, ElementsOfNoBoxAreFilled) {
  std::vector<float> out(3);
  blend<float>({}, {3}, kNan, out.data());
  for (const float one : out) EXPECT_TRUE(std::isnan(one));
}

}  // namespace blend_test
}  // namespace batchfs
