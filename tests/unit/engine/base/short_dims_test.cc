#include "engine/base/short_dims.h"

#include <vector>

#include <gtest/gtest.h>

namespace batchfs {
namespace short_dims_test {

TEST(ShortDims, KeepsAnyNumberOfDimensions) {
  Dims dims;
  for (int d = 0; d <= kMaxDims; ++d) {
    ShortDims kept = dims;
    EXPECT_EQ(kept.size(), dims.size());
    EXPECT_EQ(Dims(kept), dims);
    ShortDims copy = kept;
    ShortDims moved = std::move(copy);
    EXPECT_EQ(Dims(moved), dims);
    EXPECT_EQ(Dims(kept), dims);
    copy = moved;
    EXPECT_EQ(Dims(copy), dims);
    kept = std::move(copy);
    EXPECT_EQ(Dims(kept), dims);
    if (d > 0) {
      kept[0] = -7;
      EXPECT_EQ(kept[0], -7);
      EXPECT_EQ(moved[0], dims[0]);
    }
    if (d < kMaxDims) dims.push_back(INT64_C(1) << (d + 20));
  }
}

TEST(ShortDims, OfOtherLengthsReplaceEachOther) {
  ShortDims dims = Dims{1, 2, 3, 4, 5, 6};
  dims = Dims{1};
  EXPECT_EQ(Dims(dims), (Dims{1}));
  dims = Dims{1, 2, 3, 4, 5};
  EXPECT_EQ(Dims(dims), (Dims{1, 2, 3, 4, 5}));
  std::vector<ShortDims> many(100, dims);
  many.resize(1000, Dims{3});
  EXPECT_EQ(Dims(many[99]), (Dims{1, 2, 3, 4, 5}));
  EXPECT_EQ(Dims(many[999]), (Dims{3}));
}

TEST(ShortBox, IsTheBox) {
  const Box box{{1, 2}, {3, 4}};
  const ShortBox kept = box;
  EXPECT_EQ(Box(kept), box);
  EXPECT_EQ(kept.elements(), 12);
}

}  // namespace short_dims_test
}  // namespace batchfs
