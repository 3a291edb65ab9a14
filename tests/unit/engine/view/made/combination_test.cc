#include "engine/view/made/combination.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace combination_test {

using testing::ElementsAre;

/// a(y, x) and b(x), whole, of 2 x 3.
struct Combined : testing::Test {
  Combined() {
    data.declare("a", "<f4", {"y", "x"}, {2, 3}, {2, 3}).declare("b", "<f4", {"x"}, {3}, {3});
    dataset = data.dataset();
  }
  Combination combination(const std::string& make, Dims strides) {
    MadeSpec spec;
    spec.kind = find_made_kind(make);
    spec.name = make;
    spec.of = {"a", "b"};
    channel = std::make_unique<MadeChannel>(spec, *dataset);
    VariablePlacement placement;
    placement.tensor = 1;
    placement.made = true;
    for (std::size_t d = 0; d < 2; ++d) {
      AxisPlacement axis;
      axis.selected = Positions::range(0, d == 0 ? 2 : 3);
      axis.stride = strides[d];
      placement.axes.push_back(axis);
    }
    return Combination(*channel, placement.tensor, placement,
                       std::make_shared<const Converter>(channel->variable().cf, float32()));
  }
  static std::vector<float> write(const Combination& combination, std::vector<double> operands) {
    std::vector<float> out(operands.size() / 2, -9);
    combination.write(reinterpret_cast<std::byte*>(operands.data()),
                      reinterpret_cast<std::byte*>(out.data()), {});
    return out;
  }
  MemoryData data;
  std::shared_ptr<const Dataset> dataset;
  std::unique_ptr<MadeChannel> channel;
};

TEST_F(Combined, OperandsFollowOneAnother) {
  const Combination sum = combination("sum", {12, 4});
  EXPECT_EQ(sum.sample_bytes(), 2 * 6 * 8);
  const VariablePlacement a = sum.operand(0, dataset->variable("a"), 5, 7);
  EXPECT_EQ(a.tensor, 7u);
  EXPECT_EQ(a.variable, 5u);
  EXPECT_EQ(a.base, 0);
  EXPECT_EQ(a.axes[0].stride, 24);
  EXPECT_EQ(a.axes[1].stride, 8);
  EXPECT_TRUE(a.repeated.empty());
  const VariablePlacement b = sum.operand(1, dataset->variable("b"), 6, 7);
  EXPECT_EQ(b.base, 48);
  EXPECT_EQ(b.axes[0].stride, 8);
  ASSERT_EQ(b.repeated.size(), 1u);
  EXPECT_EQ(b.repeated[0].stride, 24);
}

TEST_F(Combined, GoesToTheStridesOfTheTensor) {
  const std::vector<double> operands{1, 2, 3, 4, 5, 6, 10, 20, 30, 10, 20, 30};
  EXPECT_THAT(write(combination("sum", {12, 4}), operands), ElementsAre(11, 22, 33, 14, 25, 36));
  EXPECT_THAT(write(combination("difference", {4, 8}), operands),
              ElementsAre(-9, -6, -18, -15, -27, -24));
  EXPECT_THAT(write(combination("product", {12, 4}), operands),
              ElementsAre(10, 40, 90, 40, 100, 180));
  EXPECT_THAT(write(combination("ratio", {12, 4}), operands),
              ElementsAre(0.1f, 0.1f, 0.1f, 0.4f, 0.25f, 0.2f));
}

TEST_F(Combined, HypotenusesNeitherOverflowNorVanish) {
  constexpr double kInf = std::numeric_limits<double>::infinity(),
                   kNan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<float> out = write(combination("wind_speed", {12, 4}),
                                       {3, 0, 1e30, kNan, kInf, kNan, -4, 0, 1e30, 1, 2, kInf});
  EXPECT_EQ(out[0], 5);
  EXPECT_EQ(out[1], 0);
  EXPECT_EQ(out[2], static_cast<float>(std::hypot(1e30, 1e30)));
  EXPECT_TRUE(std::isnan(out[3]));
  EXPECT_EQ(out[4], std::numeric_limits<float>::infinity());
  EXPECT_EQ(out[5], std::numeric_limits<float>::infinity());
}

}  // namespace combination_test
}  // namespace batchfs
