#include "engine/view/list/sample_list.h"

#include <gtest/gtest.h>

#include "engine/base/error.h"

namespace batchfs {
namespace sample_list_test {

TEST(SampleList, StartsComeBackFromTheirCodes) {
  SampleList list(Dims{30, 7, 11});
  for (std::int64_t t : {0, 17, 29})
    for (std::int64_t x : {0, 10})
      list.codes().push_back(t * list.steps()[0] + 6 * list.steps()[1] + x * list.steps()[2]);
  std::int64_t starts[3];
  list.starts(3, starts);
  EXPECT_EQ(starts[0], 17);
  EXPECT_EQ(starts[1], 6);
  EXPECT_EQ(starts[2], 10);
  EXPECT_EQ(list.rows(), 6);
}

TEST(SampleList, MorePositionsThanACodeHoldsAreRefused) {
  EXPECT_THROW(SampleList(Dims{INT64_C(1) << 40, INT64_C(1) << 40}), Error);
}

TEST(ListColumn, BecomesFloatsWithTheFirstNumberThatIsNotWhole) {
  ListColumn column{"w"};
  column.add(std::int64_t{3});
  column.add(std::int64_t{-4});
  EXPECT_TRUE(column.whole);
  column.add(0.5);
  column.add(std::int64_t{6});
  EXPECT_FALSE(column.whole);
  EXPECT_EQ(column.floats, (std::vector<double>{3, -4, 0.5, 6}));
  EXPECT_EQ(column.size(), 4U);
}

}  // namespace sample_list_test
}  // namespace batchfs
