#include "engine/view/coarsen/coarsening.h"

#include <gmock/gmock.h>

namespace batchfs {
namespace coarsening_test {

using testing::ElementsAre;

/// A channel (z, y) of 2 x 4 whose y is halved, in a tensor of (y, z) and two copies of it.
struct Coarsened : testing::Test {
  Coarsened() {
    placement.tensor = 1;
    placement.base = 40;
    AxisPlacement z, y, copies;
    z.selected = Positions::list({7, 3});
    z.stride = 4;
    y.selected = Positions::range(0, 4);
    y.coarse = 2;
    y.stride = 8;
    copies.selected = Positions::range(0, 2);
    copies.stride = 16;
    placement.axes = {z, y};
    placement.repeated = {copies};
    decoding.stored = decoding.decoded = decoding.arithmetic = float64();
  }
  Coarsening coarsening(const std::vector<CoarsenStep>& steps, Finish finish = {}) const {
    return Coarsening(steps, "a", {"z", "y"}, placement,
                      std::make_shared<const Converter>(decoding, float32(), std::move(finish)));
  }
  static std::vector<float> write(const Coarsening& coarsening) {
    std::vector<double> operands{1, 2, 3, 4, 10, 20, 30, 40};
    std::vector<float> out(8, -9);
    coarsening.write(reinterpret_cast<std::byte*>(operands.data()),
                     reinterpret_cast<std::byte*>(out.data()), {});
    return out;
  }
  const std::vector<CoarsenStep> halved{{"y", 2, CoarsenMethod::mean, "coarsen.y"}};
  VariablePlacement placement;
  CfDecoding decoding;
};

TEST_F(Coarsened, TheOperandIsTheWholeWindow) {
  const Coarsening own = coarsening(halved);
  EXPECT_EQ(own.sample_bytes(), 64);
  EXPECT_EQ(own.into(), 1u);
  EXPECT_EQ(own.base(), 40);
  const VariablePlacement operand = own.operand(placement, 5);
  EXPECT_EQ(operand.tensor, 5u);
  EXPECT_EQ(operand.base, 0);
  EXPECT_EQ(operand.axes[0].stride, 32);
  EXPECT_EQ(operand.axes[1].stride, 8);
  EXPECT_EQ(operand.axes[1].extent(), 4);
  EXPECT_TRUE(operand.repeated.empty());
}

TEST_F(Coarsened, GoesToTheStridesOfTheTensorAndIsRepeated) {
  EXPECT_THAT(write(coarsening(halved)), ElementsAre(1.5, 15, 3.5, 35, 1.5, 15, 3.5, 35));
}

TEST_F(Coarsened, StepsOfAnotherMethodComeAfter) {
  placement.axes[0].coarse = 2;
  placement.repeated.clear();
  const std::vector<float> out =
      write(coarsening({halved[0], {"z", 2, CoarsenMethod::max, "coarsen.z"}}));
  EXPECT_EQ(out[0], 15);
  EXPECT_EQ(out[2], 35);
}

TEST_F(Coarsened, HasNumbersForEachPositionOfOtherDimensions) {
  auto numbers = std::make_shared<Normalization>();
  numbers->subtract = {0, 0, 0, 10, 0, 0, 0, 1};
  numbers->divide.assign(8, 1);
  numbers->strides = {1, 0};
  EXPECT_THAT(write(coarsening(halved, {.normalization = numbers})),
              ElementsAre(0.5, 5, 2.5, 25, 0.5, 5, 2.5, 25));
  numbers->strides = {0, 1};
  EXPECT_THROW(coarsening(halved, {.normalization = numbers}), Error);
}

TEST_F(Coarsened, HasNoSumsAlongDimensionsThatItLacks) {
  EXPECT_NO_THROW(coarsening({halved[0], {"x", 2, CoarsenMethod::mean, "coarsen.x"}}));
  EXPECT_THROW(coarsening({{"x", 2, CoarsenMethod::sum, "coarsen.x"}}), Error);
}

}  // namespace coarsening_test
}  // namespace batchfs
