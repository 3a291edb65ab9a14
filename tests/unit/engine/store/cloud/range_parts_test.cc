#include "engine/store/cloud/range_parts.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace range_parts_test {

constexpr ByteRange kWhole{}, kMiddle{10, 20}, kOpen{10, UINT64_MAX}, kEnd{0, 8, true};

TEST(RangeParts, ARangeCoversThoseInside) {
  EXPECT_TRUE(covers(kWhole, kMiddle) && covers(kWhole, kEnd) && covers(kWhole, kWhole));
  EXPECT_TRUE(covers(kMiddle, {10, 20}) && covers(kMiddle, {12, 3}) && covers(kOpen, kMiddle));
  EXPECT_FALSE(covers(kMiddle, {9, 2}) || covers(kMiddle, {29, 2}) || covers(kMiddle, kOpen));
  EXPECT_TRUE(covers(kEnd, {0, 4, true}));
  EXPECT_FALSE(covers(kEnd, {0, 9, true}) || covers(kEnd, kMiddle) || covers(kMiddle, kEnd));
}

TEST(RangeParts, APartIsCutOutOfWhatCame) {
  using Part = std::pair<std::size_t, std::size_t>;
  EXPECT_EQ(slice(kMiddle, {12, 5}, 20), Part(2, 5));
  EXPECT_EQ(slice(kMiddle, {12, 5}, 4), Part(2, 2));  // the object is short
  EXPECT_EQ(slice(kMiddle, {28, 5}, 4), Part(4, 0));
  EXPECT_EQ(slice(kEnd, {0, 4, true}, 8), Part(4, 4));
  EXPECT_EQ(slice(kWhole, kEnd, 3), Part(0, 3));
}

}  // namespace range_parts_test
}  // namespace batchfs
