#include "engine/view/coarsen/blocks.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>

namespace batchfs {
namespace blocks_test {

using testing::ElementsAre;
using testing::NanSensitiveDoubleEq;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<double> reduced(std::vector<double> values, const Dims& shape, const Dims& factors,
                            CoarsenMethod how) {
  PaddedPositions padded(shape.size());
  const Dims coarse = reduce_blocks(values.data(), shape, factors, how, padded);
  values.resize(static_cast<std::size_t>(element_count(coarse)));
  return values;
}

std::vector<double> counted(std::int64_t count) {
  std::vector<double> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), 0);
  return values;
}

TEST(Blocks, AreReducedByEachMethod) {
  const Dims shape{2, 4}, factors{2, 2};
  EXPECT_THAT(reduced(counted(8), shape, factors, CoarsenMethod::mean), ElementsAre(2.5, 4.5));
  EXPECT_THAT(reduced(counted(8), shape, factors, CoarsenMethod::sum), ElementsAre(10, 18));
  EXPECT_THAT(reduced(counted(8), shape, factors, CoarsenMethod::min), ElementsAre(0, 2));
  EXPECT_THAT(reduced(counted(8), shape, factors, CoarsenMethod::max), ElementsAre(5, 7));
}

TEST(Blocks, OfAnyDimensions) {
  EXPECT_THAT(reduced(counted(12), {3, 2, 2}, {3, 1, 1}, CoarsenMethod::sum),
              ElementsAre(12, 15, 18, 21));
  EXPECT_THAT(reduced(counted(12), {3, 2, 2}, {1, 2, 1}, CoarsenMethod::sum),
              ElementsAre(2, 4, 10, 12, 18, 20));
  EXPECT_THAT(reduced(counted(12), {3, 2, 2}, {3, 2, 2}, CoarsenMethod::sum), ElementsAre(66));
  EXPECT_THAT(reduced({5}, {}, {}, CoarsenMethod::mean), ElementsAre(5));
  EXPECT_THAT(reduced({}, {0, 2}, {1, 2}, CoarsenMethod::mean), ElementsAre());
}

TEST(Blocks, LeaveMissingValuesOut) {
  const auto of = [](CoarsenMethod how) {
    return reduced({kNan, 3, kNan, kNan, -1, 2}, {3, 2}, {1, 2}, how);
  };
  EXPECT_THAT(of(CoarsenMethod::mean), ElementsAre(3, NanSensitiveDoubleEq(kNan), 0.5));
  EXPECT_THAT(of(CoarsenMethod::sum), ElementsAre(3, 0, 1));
  EXPECT_THAT(of(CoarsenMethod::min), ElementsAre(3, NanSensitiveDoubleEq(kNan), -1));
  EXPECT_THAT(of(CoarsenMethod::max), ElementsAre(3, NanSensitiveDoubleEq(kNan), 2));
}

TEST(Blocks, OfPaddingAloneHaveNoSumThatTheNextReductionWouldTake) {
  // 2 x 4, whose last two columns are padding, as is one of the first block's.
  std::vector<double> values{1, kNan, kNan, kNan, 2, kNan, kNan, kNan};
  PaddedPositions padded{{}, {false, true, true, true}};
  EXPECT_EQ(reduce_blocks(values.data(), {2, 4}, {2, 2}, CoarsenMethod::sum, padded), (Dims{1, 2}));
  EXPECT_THAT(values[0], 3);
  EXPECT_THAT(values[1], NanSensitiveDoubleEq(kNan));
  EXPECT_EQ(padded, (PaddedPositions{{}, {false, true}}));
  EXPECT_EQ(reduce_blocks(values.data(), {1, 2}, {1, 2}, CoarsenMethod::mean, padded),
            (Dims{1, 1}));
  EXPECT_THAT(values[0], 3);
  EXPECT_EQ(padded, (PaddedPositions{{}, {false}}));
  // NaN that is not padding: its sum is 0.
  values = {kNan, kNan};
  padded = {{false, true}};
  reduce_blocks(values.data(), {2}, {1}, CoarsenMethod::sum, padded);
  EXPECT_THAT(values, ElementsAre(0, NanSensitiveDoubleEq(kNan)));
}

TEST(Blocks, KeepInfinities) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  EXPECT_THAT(reduced({kInf, kInf}, {2}, {2}, CoarsenMethod::min), ElementsAre(kInf));
  EXPECT_THAT(reduced({-kInf, 1}, {2}, {2}, CoarsenMethod::mean), ElementsAre(-kInf));
}

}  // namespace blocks_test
}  // namespace batchfs
