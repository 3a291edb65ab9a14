#include "engine/view/samples/missing.h"

#include <set>

#include <gtest/gtest.h>

namespace batchfs {
namespace missing_test {

/// One dimension, in a window.
AxisPlacement axis(Positions selected, std::int64_t size, bool wrap,
                   std::vector<std::int64_t> offsets, int window = 0) {
  AxisPlacement result;
  result.selected = std::move(selected);
  result.window = window;
  result.size = size;
  result.wrap = wrap;
  result.offsets = std::move(offsets);
  return result;
}

std::set<std::int64_t> marked(const VariablePlacement& placement, const WindowGrid& grid,
                              MissingBox box) {
  std::int64_t windows = 1;
  for (std::int64_t count : grid.counts) windows *= count;
  MissingMarks marks(windows);
  mark_windows(placement, grid, std::move(box), marks);
  const SampleIndex index = marks.index();
  std::set<std::int64_t> result;
  for (std::int64_t i = 0; i < windows; ++i)
    if ((index.words()[static_cast<std::size_t>(i / 64)] >> (i % 64) & 1) == 0) result.insert(i);
  return result;
}

TEST(Missing, EveryWindowThatHoldsAMissingValue) {
  // Against a search through all windows, for ranges and lists, with and without wrapping.
  const std::vector<Positions> selections = {Positions::range(4, 20),
                                             Positions::list({9, 4, 5, 30, 4, 12, 11, 10, 7, 6})};
  for (const Positions& selected : selections)
    for (bool wrap : {false, true})
      for (std::int64_t size : {1, 3, 5})
        for (std::int64_t stride : {1, 2, 4})
          for (const std::vector<std::int64_t>& offsets :
               {std::vector<std::int64_t>{0}, {-2, 0, 3}}) {
            const std::int64_t length = selected.size();
            std::vector<std::int64_t> starts;
            for (std::int64_t s = 0; s < length; s += stride) {
              bool inside = true;
              for (std::int64_t o : offsets)
                inside = inside && s + o >= 0 && s + o + size <= length;
              if (wrap || inside) starts.push_back(s);
            }
            if (starts.empty()) continue;
            const WindowGrid grid{
                {starts[0] / stride}, {static_cast<std::int64_t>(starts.size())}, {stride}};
            VariablePlacement placement;
            placement.axes = {axis(selected, size, wrap, offsets)};
            // Three neighbouring chunk elements, of which the outer ones are missing.
            const std::set<std::int64_t> missing{5, 9};
            std::set<std::int64_t> expected;
            for (std::size_t w = 0; w < starts.size(); ++w)
              for (std::int64_t o : offsets)
                for (std::int64_t i = 0; i < size; ++i) {
                  const std::int64_t p = ((starts[w] + o + i) % length + length) % length;
                  if (missing.contains(selected[p])) expected.insert(static_cast<std::int64_t>(w));
                }
            EXPECT_EQ(marked(placement, grid, {{{5, 7, 9}}, {1, 0, 1}}), expected)
                << "wrap " << wrap << " size " << size << " stride " << stride << " offsets "
                << offsets.size();
          }
}

TEST(Missing, OfTheStartsThatAreLeft) {
  // Windows of 3 at 0, 4, 10 and 12 of a stride of 2.
  const WindowGrid grid{
      {0},
      {4},
      {2},
      {std::make_shared<std::vector<std::int64_t>>(std::vector<std::int64_t>{0, 2, 5, 6})}};
  VariablePlacement placement;
  placement.axes = {axis(Positions::range(0, 20), 3, false, {0})};
  EXPECT_EQ(marked(placement, grid, {{{3, 12}}, {1, 1}}), (std::set<std::int64_t>{2, 3}));
  EXPECT_EQ(marked(placement, grid, {{{3, 6}}, {1, 1}}), (std::set<std::int64_t>{1}));
}

TEST(Missing, WindowDimensionsThatTheVariableLacks) {
  // Windows (a: 2, b: 3, c: 2); the variable has c and b, in this order, and a dimension in no
  // window.
  VariablePlacement placement;
  placement.axes = {axis(Positions::range(0, 2), 1, false, {0}, 2),
                    axis(Positions::range(0, 9), 9, false, {0}, -1),
                    axis(Positions::range(0, 3), 1, false, {0}, 1)};
  const WindowGrid grid{{0, 0, 0}, {2, 3, 2}, {1, 1, 1}};
  // Missing at c = 1, b = 2: windows a * 6 + 2 * 2 + 1.
  EXPECT_EQ(marked(placement, grid, {{{0, 1}, {4}, {0, 1, 2}}, {0, 0, 0, 0, 0, 1}}),
            (std::set<std::int64_t>{5, 11}));
}

TEST(Missing, WhatNoWindowHolds) {
  VariablePlacement placement;
  placement.axes = {axis(Positions::range(0, 10), 2, false, {0})};
  EXPECT_TRUE(marked(placement, {{0}, {3}, {4}}, {{{2, 3, 6, 7}}, {1, 1, 1, 1}}).empty());
}

}  // namespace missing_test
}  // namespace batchfs
