#include "engine/write/prediction/axis_windows.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "tests/unit/engine/write/prediction/prediction_oracle.h"

namespace batchfs {
namespace axis_windows_test {

using Pieces = std::vector<AxisPiece>;
using Sharing = AxisWindows::Sharing;

TEST(AxisWindows, PiecesGoToTheObjectsThatAWindowTouches) {
  AxisWindows axis(window_axis("x", 20, 0, 7), {0, 5}, Overlap::last, true);
  axis.set_step(4);
  EXPECT_EQ(axis.pieces(5), (Pieces{{1, 0, 1, 3}, {2, 3, 0, 4}}));
  EXPECT_EQ(axis.objects_of(5), (std::vector<std::int64_t>{1, 2}));
  EXPECT_THROW(axis.pieces(3), Error);
}

TEST(AxisWindows, PaddingAtBothEndsIsLeftOut) {
  const AxisWindows axis(window_axis("x", 10, 0, 8), {-3, 6, 12}, Overlap::last, true);
  EXPECT_EQ(axis.pieces(-3), (Pieces{{0, 3, 0, 5}}));
  EXPECT_EQ(axis.pieces(6), (Pieces{{0, 0, 6, 4}}));
  EXPECT_EQ(axis.pieces(12), Pieces{});
  EXPECT_TRUE(axis.objects_of(12).empty());
}

TEST(AxisWindows, ACircleGoesOnAtItsBegin) {
  AxisWindows axis(window_axis("lon", 10, 0, 6, true), {-2, 8}, Overlap::last, true);
  EXPECT_EQ(axis.pieces(8), (Pieces{{0, 0, 8, 2}, {0, 2, 0, 4}}));
  EXPECT_EQ(axis.pieces(-2), axis.pieces(8));
}

TEST(AxisWindows, EachStartIsAPosition) {
  AxisWindows axis({.name = "init", .length = 3, .window = 0, .by_start = true}, {2, 7, 30},
                   Overlap::error, true);
  axis.set_step(2);
  EXPECT_EQ(axis.pieces(30), (Pieces{{1, 0, 0, 1}}));
  EXPECT_EQ(axis.sharing(), Sharing::none);
  EXPECT_THROW(AxisWindows({.name = "init", .length = 2, .window = 0, .by_start = true}, {2, 7, 30},
                           Overlap::error, true),
               Error);
}

TEST(AxisWindows, BlocksCollideOnlyWhereTheyShareAPosition) {
  const PredictedAxis axis{.name = "time", .length = 12, .window = 0, .blocks = {{0, 2}, {4, 2}}};
  EXPECT_EQ(AxisWindows(axis, {0, 2}, Overlap::error, true).sharing(), Sharing::none);
  EXPECT_EQ(AxisWindows(axis, {0, 3}, Overlap::error, true).sharing(), Sharing::collide);
  // Padding is in no array: 14 and 15 of both.
  EXPECT_EQ(AxisWindows(axis, {6, 10}, Overlap::error, true).sharing(), Sharing::collide);
  EXPECT_EQ(AxisWindows(axis, {8, 12}, Overlap::error, true).sharing(), Sharing::none);
  EXPECT_EQ(AxisWindows(window_axis("lon", 5, 0, 6, true), {0}, Overlap::error, true).sharing(),
            Sharing::collide);
}

TEST(AxisWindows, EachPositionIsOfTheWindowWhoseMiddleIsNearest) {
  constexpr std::int64_t kSize = 7, kLength = 30;
  const std::vector<std::int64_t> starts{0, 3, 7, 12, 20};
  const AxisWindows axis(window_axis("x", kLength, 0, kSize), starts, Overlap::trim, true);
  EXPECT_EQ(axis.sharing(), Sharing::overlap);
  std::vector<std::int64_t> owner(kLength, -1), expected(kLength, -1);
  for (const std::int64_t start : starts)
    for (const AxisPiece& piece : axis.pieces(start))
      for (std::int64_t i = 0; i < piece.count; ++i) {
        EXPECT_EQ(start + piece.source + i, piece.target + i);
        std::int64_t& one = owner[static_cast<std::size_t>(piece.target + i)];
        EXPECT_EQ(one, -1);
        one = start;
      }
  for (std::int64_t at = 0; at < kLength; ++at) {
    std::int64_t nearest = std::numeric_limits<std::int64_t>::max();
    for (const std::int64_t start : starts) {
      const std::int64_t distance = std::abs(2 * (at - start) - (kSize - 1));
      if (at < start || at >= start + kSize || distance >= nearest) continue;
      nearest = distance;
      expected[static_cast<std::size_t>(at)] = start;
    }
  }
  EXPECT_EQ(owner, expected);
}

TEST(AxisWindows, CosineRampsOfNeighboursSumToOne) {
  const AxisWindows axis(window_axis("x", 24, 0, 8), {0, 6, 11, 16}, Overlap::cosine, true);
  std::vector<double> sums(24);
  for (const std::int64_t start : {0, 6, 11, 16})
    for (std::int64_t i = 0; i < 8; ++i)
      sums[static_cast<std::size_t>(start + i)] += axis.weights(start)[i];
  for (const double sum : sums) EXPECT_NEAR(sum, 1, 1e-12);
  EXPECT_NEAR(axis.weights(6)[0], std::pow(std::sin(M_PI / 8), 2), 1e-15);
  EXPECT_EQ(axis.weights(0)[0], 1);
  const AxisWindows mean(window_axis("x", 24, 0, 8), {0, 6}, Overlap::mean, true);
  EXPECT_EQ(mean.weights(6)[0], 1);
}

TEST(AxisWindows, MembersThatContradictEachOtherAreRefused) {
  const auto refused = [](const PredictedAxis& axis) {
    EXPECT_THROW(AxisWindows(axis, {0, 1}, Overlap::last, true), Error);
  };
  refused({.name = "x", .length = -1});
  refused({.name = "x", .length = 5, .window = 0});
  refused(window_axis("x", 5, 0, 0));
  refused(window_axis("x", 5, 0, std::int64_t{1} << 62));
  refused({.name = "x", .length = 5, .window = 0, .blocks = {{INT64_MIN, 2}}});
  refused({.name = "x", .length = 5, .labels = std::make_shared<const CoordinateLabels>()});
  EXPECT_THROW(AxisWindows(window_axis("x", 5, 0, 1), {3, 1}, Overlap::last, true), Error);
}

TEST(AxisWindows, PiecesOfAnObjectAreThoseOfAllPieces) {
  for (const bool wraps : {false, true}) {
    PredictedAxis one = window_axis("x", 23, 0, 6);
    one.blocks = {{-2, 6}, {9, 3}};
    one.wraps = wraps;
    AxisWindows axis(one, {-1, 0, 4, 7, 15, 22}, Overlap::last, false);
    for (const std::int64_t step : {1, 4, 23}) {
      axis.set_step(step);
      for (const std::int64_t start : {-1, 0, 4, 7, 15, 22})
        for (std::int64_t object = 0; object * step < 23; ++object) {
          Pieces right = axis.pieces(start);
          std::erase_if(right, [&](const AxisPiece& piece) { return piece.object != object; });
          EXPECT_EQ(axis.pieces_in(object, start), right) << start << " in " << object;
        }
    }
  }
}

}  // namespace axis_windows_test
}  // namespace batchfs
