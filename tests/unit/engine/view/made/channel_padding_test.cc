#include "engine/view/made/channel_padding.h"

#include <gmock/gmock.h>

namespace batchfs {
namespace channel_padding_test {

using testing::IsEmpty;

/// A channel (y, x) of windows of 4 along y, of which there are 6, and 3 whole along x.
struct PaddedChannel : testing::Test {
  PaddedChannel() {
    AxisPlacement y, x;
    y.selected = Positions::range(0, 6);
    y.window = 0;
    y.size = 4;
    y.stride = 12;
    x.selected = Positions::range(0, 3);
    x.stride = 4;
    placement.tensor = 1;
    placement.base = 100;
    placement.axes = {y, x};
  }
  std::vector<Padding> paddings(const ChannelPadding& padding, std::int64_t start) const {
    std::vector<Padding> result;
    padding.add_to(result, {{start}, {0, 1000}});
    return result;
  }
  const std::vector<std::string> dims{"y", "x"};
  const std::vector<WindowDim> windows{{"y", 4, false, true}}, whole{{"y", 4, false, false}};
  VariablePlacement placement;
};

TEST_F(PaddedChannel, IsEmptyWhereWindowsStayInside) {
  ChannelPadding padding(placement, dims, whole);
  padding.add(placement, dims, whole);
  EXPECT_TRUE(padding.empty());
  EXPECT_EQ(padding.tensor(), 1u);
}

TEST_F(PaddedChannel, PassesTheEnd) {
  ChannelPadding padding(placement, dims, windows);
  padding.add(placement, dims, windows);
  EXPECT_FALSE(padding.empty());
  EXPECT_THAT(paddings(padding, 2), IsEmpty());
  const std::vector<Padding> found = paddings(padding, 3);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].tensor, 1u);
  EXPECT_EQ(found[0].offset, 1000 + 100 + 3 * 12);
  EXPECT_EQ(found[0].shape, (Dims{1, 3}));
  EXPECT_EQ(found[0].strides, (Dims{12, 4}));
}

TEST_F(PaddedChannel, OfBlocksThoseThatAreOutsideAltogether) {
  placement.axes[0].coarse = 2;
  ChannelPadding padding(placement, dims, windows);
  padding.add(placement, dims, windows);
  EXPECT_THAT(paddings(padding, 3), IsEmpty());
  const std::vector<Padding> found = paddings(padding, 4);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].offset, 1000 + 100 + 12);
  EXPECT_EQ(found[0].shape, (Dims{1, 3}));
}

TEST_F(PaddedChannel, IsPaddingWhereAnyOperandIs) {
  ChannelPadding padding(placement, dims, whole);
  VariablePlacement x;
  x.axes = {placement.axes[1]};
  x.axes[0].selected = Positions::list({0, Positions::kNone, 7});
  padding.add(placement, dims, whole);
  padding.add(x, {"x"}, whole);
  const std::vector<Padding> found = paddings(padding, 0);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].offset, 1000 + 100 + 4);
  EXPECT_EQ(found[0].shape, (Dims{4, 1}));
}

TEST_F(PaddedChannel, OffsetsThatHavePlacementsOfTheirOwn) {
  placement.axes[0].offsets = {0, 0};
  ChannelPadding padding(placement, dims, whole);
  VariablePlacement second = placement;
  second.axes[0].offsets = {0};
  second.axes[0].before = 4;
  second.axes[0].selected = Positions::list({0, 1, Positions::kNone, 3, 4, 5});
  padding.add(second, dims, whole);
  const std::vector<Padding> found = paddings(padding, 1);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].offset, 1000 + 100 + 5 * 12);
  EXPECT_EQ(found[0].shape, (Dims{1, 3}));
}

TEST_F(PaddedChannel, DimensionsThatItLacksPassTheEndToo) {
  AxisPlacement copies = placement.axes[0];
  placement.axes = {placement.axes[1]};
  placement.repeated = {copies};
  const ChannelPadding padding(placement, {"x"}, windows);
  const std::vector<Padding> found = paddings(padding, 5);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].offset, 1000 + 100 + 12);
  EXPECT_EQ(found[0].shape, (Dims{3, 3}));
}

}  // namespace channel_padding_test
}  // namespace batchfs
