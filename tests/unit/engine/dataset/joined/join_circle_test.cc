#include "engine/dataset/joined/join_circle.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace join_circle_test {

using Pick = JoinRule::Pick;

JoinCircle circle(const std::vector<double>& labels) {
  return {JoinLabels(MemoryData().index<double>("x", "<f8", labels).dataset()->index("x")), 360,
          1e-9};
}

TEST(JoinCircle, FindsLabelsOfEitherConvention) {
  const JoinCircle own = circle({-180, -90, 0, 90});
  EXPECT_EQ(own.find(270, {}), 1);
  EXPECT_EQ(own.find(-270, {}), 3);
  EXPECT_EQ(own.find(180, {}), 0);
  EXPECT_EQ(own.find(360 - 1e-12, {}), 2);
  EXPECT_EQ(own.find(1, {}), Positions::kNone);
  EXPECT_EQ(own.find(NAN, {}), Positions::kNone);
  EXPECT_EQ(circle({}).find(1, {}), Positions::kNone);
}

TEST(JoinCircle, NeighboursLieOverTheSeam) {
  const JoinCircle own = circle({0, 120, 240});
  EXPECT_EQ(own.find(359.75, {.pick = Pick::nearest}), 0);
  EXPECT_EQ(own.find(-0.25, {.pick = Pick::next}), 0);
  EXPECT_EQ(own.find(359, {.pick = Pick::last}), 2);
  EXPECT_EQ(own.find(300, {.pick = Pick::nearest}), 0) << "of two as far away the upper one";
  EXPECT_EQ(own.find(359, {.pick = Pick::nearest, .distance = 0.5}), Positions::kNone);
  EXPECT_EQ(own.find(359, {.distance = 1}), 0);
  EXPECT_EQ(circle({10}).find(350, {.pick = Pick::last}), 0);
}

TEST(JoinCircle, APlaceThatIsStoredTwiceIsTheFirst) {
  const JoinCircle own = circle({360, 90, 0});
  EXPECT_EQ(own.find(0, {}), 0);
  EXPECT_EQ(circle({0, 90, 360 - 1e-12}).find(0, {}), 0);
}

TEST(JoinCircle, TheArcBeginsBehindTheWidestGap) {
  const JoinCircle::Arc arc = circle({0, 10, 20, 350}).arc();
  EXPECT_EQ(arc.positions, (std::vector<std::int64_t>{3, 0, 1, 2}));
  EXPECT_EQ(arc.places, (std::vector<long double>{350, 360, 370, 380}));
  EXPECT_EQ(circle({-180, -90, 0, 90}).arc().positions, (std::vector<std::int64_t>{2, 3, 0, 1}));
  EXPECT_EQ(unwound({170, -170, -150}, 360), (std::vector<long double>{170, 190, 210}));
}

}  // namespace join_circle_test
}  // namespace batchfs
