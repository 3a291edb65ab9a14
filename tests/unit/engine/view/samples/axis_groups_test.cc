#include "engine/view/samples/axis_groups.h"

#include <gmock/gmock.h>

namespace batchfs {
namespace axis_groups_test {

using testing::ElementsAre;
using testing::IsEmpty;

/// Windows of 3 at 0, 2, 4, ...; samples at the first, third and fourth start, which differ.
struct Axis {
  WindowGrid grid{.first = {0}, .counts = {4}, .strides = {2}};
  StartTable starts = StartTable::of_numbers({4, 3}, {0, 1, 6, 11});
  AxisPlacement placement;

  Axis() {
    placement.window = 0;
    placement.size = 3;
    placement.selected = Positions::range(10, 9);
  }
  AxisGroups groups() const { return {placement, grid, 0, starts, 0}; }
};

TEST(AxisGroups, EachPositionHasTheGroupsWhoseWindowsHoldIt) {
  const AxisGroups groups = Axis().groups();
  EXPECT_THAT(groups.of(9), IsEmpty());
  for (const int index : {10, 11, 12})
    EXPECT_THAT(groups.of(index), ElementsAre(GroupRange{0, 1})) << index;
  EXPECT_THAT(groups.of(13), IsEmpty());
  EXPECT_THAT(groups.of(14), ElementsAre(GroupRange{1, 2}));
  EXPECT_THAT(groups.of(16), ElementsAre(GroupRange{1, 3}));
  EXPECT_THAT(groups.of(18), ElementsAre(GroupRange{2, 3}));
  EXPECT_THAT(groups.of(19), IsEmpty());
}

TEST(AxisGroups, AnIndexThatIsSelectedTwiceHasTheGroupsOfBoth) {
  Axis axis;
  axis.placement.selected = Positions::list({4, 4, 4, 4, 7, 7, 7, 7, 4});
  const AxisGroups groups = axis.groups();
  EXPECT_THAT(groups.of(4), ElementsAre(GroupRange{0, 1}, GroupRange{2, 3}));
  EXPECT_THAT(groups.of(7), ElementsAre(GroupRange{1, 3}));
}

TEST(AxisGroups, WithoutWindowsEveryGroupReachesAll) {
  Axis axis;
  axis.placement.window = -1;
  EXPECT_THAT(axis.groups().of(13), ElementsAre(GroupRange{0, 3}));
}

TEST(AxisGroups, RangesThatTouchAreMerged) {
  std::vector<GroupRange> ranges{{5, 7}, {0, 2}, {2, 3}, {6, 9}, {6, 7}};
  merge_ranges(ranges);
  EXPECT_THAT(ranges, ElementsAre(GroupRange{0, 3}, GroupRange{5, 9}));
}

}  // namespace axis_groups_test
}  // namespace batchfs
