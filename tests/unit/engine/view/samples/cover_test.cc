#include "engine/view/samples/cover.h"

#include <gmock/gmock.h>

namespace batchfs {
namespace cover_test {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using Ranges = std::vector<std::pair<std::int64_t, std::int64_t>>;

Ranges inside(std::int64_t first, std::int64_t count, bool circle) {
  Ranges ranges;
  for_each_inside(first, count, 10, circle,
                  [&](std::int64_t begin, std::int64_t end) { ranges.emplace_back(begin, end); });
  return ranges;
}

TEST(Cover, PositionsBeyondTheEndAreAtTheOtherEndOfACircle) {
  EXPECT_THAT(inside(8, 4, true), ElementsAre(Pair(8, 10), Pair(0, 2)));
  EXPECT_THAT(inside(-3, 4, true), ElementsAre(Pair(7, 10), Pair(0, 1)));
  EXPECT_THAT(inside(23, 12, true), ElementsAre(Pair(0, 10)));
  EXPECT_THAT(inside(8, 4, false), ElementsAre(Pair(8, 10)));
  EXPECT_THAT(inside(-3, 4, false), ElementsAre(Pair(0, 1)));
  EXPECT_THAT(inside(10, 4, false), IsEmpty());
}

TEST(Cover, OffsetsWhoseWindowsTouchAreOneStretch) {
  AxisPlacement axis;
  axis.window = 0;
  axis.size = 2;
  axis.offsets = {7, -2, 0, 1};
  const WindowStretches stretches(axis);
  ASSERT_EQ(stretches.size(), 2u);
  EXPECT_THAT(stretches.at(0, 5), Pair(3, 5));
  EXPECT_THAT(stretches.at(1, 5), Pair(12, 2));
  EXPECT_THAT(stretches.hull(5), Pair(3, 11));
}

TEST(Cover, OnAFinerGridOffsetsCountItsPositions) {
  AxisPlacement axis;
  axis.window = 0;
  axis.size = 6;
  axis.scale = 3;
  axis.offsets = {0, 4};
  const WindowStretches stretches(axis);
  ASSERT_EQ(stretches.size(), 2u);
  EXPECT_THAT(stretches.at(1, 2), Pair(18, 6));
}

TEST(Cover, TooManyStretchesAreRefused) {
  AxisPlacement axis;
  axis.window = 0;
  axis.offsets.clear();
  for (std::int64_t o = 0; o < 1000; ++o) axis.offsets.push_back(2 * o);
  const WindowStretches stretches(axis);
  EXPECT_NO_THROW(stretches.check_starts(1 << 20));
  EXPECT_THROW(stretches.check_starts(1 << 24), Error);
}

}  // namespace cover_test
}  // namespace batchfs
