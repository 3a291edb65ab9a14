#include "engine/dataset/joined/nested_cells.h"

#include <cmath>
#include <numeric>

#include <gmock/gmock.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace nested_cells_test {

using Found = std::vector<std::int64_t>;
using testing::HasSubstr;

NestedGrids grids(std::vector<long double> anchor, std::vector<long double> own,
                  bool begins = false) {
  NestedGrids result;
  result.anchor = std::move(anchor);
  result.own_positions.resize(own.size());
  std::iota(result.own_positions.begin(), result.own_positions.end(), 0);
  result.own = std::move(own);
  result.begins = begins;
  result.anchor_name = "'x' of 'a'";
  result.own_name = "'x' of 'b'";
  return result;
}
template <class Run>
std::string refusal(Run&& run) {
  return error_of(run).why();
}

TEST(NestedCells, FinerOnesComeInTheAnchorsDirection) {
  EXPECT_EQ(finer_cells(grids({3, 1}, {0.5, 1.5, 2.5, 3.5}), 2, 0), (Found{3, 2, 1, 0}));
  EXPECT_EQ(finer_cells(grids({0, 6}, {0, 3, 6}, true), 2, 0), (Found{0, 1, -1, -1}));
  EXPECT_THAT(refusal([] {
                finer_cells(grids({1, 3}, {0.5, 1.6, 2.5, 3.5}), 2, 0);
              }),
              HasSubstr("in the cell of 'x' of 'a' at position 0, 0.5 from its label"));
  EXPECT_THAT(refusal([] {
                finer_cells(grids({1, NAN, 3}, {1}), 2, 0);
              }),
              HasSubstr("not evenly spaced at position 1"));
}

TEST(NestedCells, CoarserOnesAreRepeatedAndMayHaveGaps) {
  EXPECT_EQ(coarser_cells(grids({0.5, 1.5, 2.5, 3.5, 4.5}, {1, 3}), 2, 0), (Found{0, 0, 1, 1, -1}));
  EXPECT_EQ(coarser_cells(grids({3.5, 0.5, -0.5}, {1, 3}), 2, 0), (Found{1, 0, -1}));
  EXPECT_EQ(coarser_cells(grids({0, 5, 6, 7, 12, 18, NAN}, {0, 6, 18}, true), 6, 0),
            (Found{0, 0, 1, 1, -1, 2, -1}));
  EXPECT_EQ(coarser_cells(grids({0, 6}, {0, 6, 12}, true), 6, 6), (Found{1, 2}));
  EXPECT_THAT(
      refusal([] {
        coarser_cells(grids({0.5, 1.4}, {1, 3}), 2, 0);
      }),
      HasSubstr("'x' of 'a' at position 1 is not a cell of 2 in that of 'x' of 'b' at position"));
  EXPECT_THAT(refusal([] { coarser_cells(grids({1}, {1}), 2, 0); }), HasSubstr("has no step"));
}

TEST(NestedCells, OnACircleACellMayLieOverTheSeam) {
  NestedGrids round =
      grids({0, 90, 180, 270}, {22.5, 67.5, 112.5, 157.5, 202.5, 247.5, 292.5, 337.5});
  round.period = 360;
  EXPECT_EQ(finer_cells(round, 2, 0), (Found{7, 0, 1, 2, 3, 4, 5, 6}));
  round = grids({-22.5, 22.5, 337.5, 67.5}, {0, 90, 180, 270});
  round.period = 360;
  EXPECT_EQ(coarser_cells(round, 2, 0), (Found{0, 0, 0, 1}));
}

}  // namespace nested_cells_test
}  // namespace batchfs
