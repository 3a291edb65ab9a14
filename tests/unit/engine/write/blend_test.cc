#include "engine/write/blend.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
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

TEST(Blend, ValuesOfOneBoxKeepTheirBits) {
  const std::vector<float> values{-0.0f, -kNan, 1e-45f, std::numeric_limits<float>::infinity()};
  const std::vector<double> weights{0.3, 0.3, 0.3, 0.3};
  const std::vector<WeightedBox<float>> boxes{{{{0}, {4}}, values.data(), {weights.data()}}};
  std::vector<float> out(4);
  blend<float>(boxes, {4}, 7, out.data());
  EXPECT_EQ(std::memcmp(out.data(), values.data(), sizeof(float) * 4), 0);
}

TEST(Blend, IsTheMeanOfAnyBoxes) {
  // Against a loop over the elements.
  std::mt19937 random(1);
  const auto below = [&random](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  for (int round = 0; round < 200; ++round) {
    const Dims shape{1 + below(3), 1 + below(4), 1 + below(20)};
    std::vector<std::vector<double>> values, weights;
    std::vector<WeightedBox<double>> boxes;
    for (std::int64_t b = below(6); b > 0; --b) {
      WeightedBox<double> one{{Dims(3), Dims(3)}, nullptr, {nullptr, nullptr, nullptr}};
      for (std::size_t d = 0; d < 3; ++d) {
        one.box.start[d] = below(shape[d]);
        one.box.shape[d] = below(shape[d] - one.box.start[d] + 1);
        auto& along = weights.emplace_back();
        for (std::int64_t x = 0; x < one.box.shape[d]; ++x)
          along.push_back(1 / (1.0 + static_cast<double>(below(9))));
        if (below(2) == 0) one.weights[d] = along.data();
      }
      auto& own = values.emplace_back(static_cast<std::size_t>(element_count(one.box.shape)));
      for (double& value : own) value = static_cast<double>(below(1000)) / 7;
      one.values = own.data();
      boxes.push_back(one);
    }
    std::vector<double> out(static_cast<std::size_t>(element_count(shape)));
    blend<double>(boxes, shape, -1, out.data());
    std::size_t at = 0;
    for (std::int64_t z = 0; z < shape[0]; ++z)
      for (std::int64_t y = 0; y < shape[1]; ++y)
        for (std::int64_t x = 0; x < shape[2]; ++x, ++at) {
          long double sum = 0, total = 0;
          for (const auto& one : boxes) {
            const Dims in{z - one.box.start[0], y - one.box.start[1], x - one.box.start[2]};
            long double weight = 1;
            bool is_in = true;
            for (std::size_t d = 0; d < 3; ++d) {
              is_in = is_in && in[d] >= 0 && in[d] < one.box.shape[d];
              if (is_in && one.weights[d] != nullptr) weight *= one.weights[d][in[d]];
            }
            if (!is_in) continue;
            const auto index = (in[0] * one.box.shape[1] + in[1]) * one.box.shape[2] + in[2];
            sum += weight * one.values[index];
            total += weight;
          }
          const double right = total > 0 ? static_cast<double>(sum / total) : -1;
          ASSERT_NEAR(out[at], right, 1e-13 * std::abs(right)) << round;
        }
  }
}

TEST(Blend, ElementsOfNoBoxAreFilled) {
  std::vector<float> out(3);
  blend<float>({}, {3}, kNan, out.data());
  for (const float one : out) EXPECT_TRUE(std::isnan(one));
}

}  // namespace blend_test
}  // namespace batchfs
