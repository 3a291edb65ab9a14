#include "engine/view/order/lanes.h"

#include <set>

#include <gtest/gtest.h>

namespace batchfs {
namespace lanes_test {

TEST(Lanes, BatchesComeFromEachLaneInTurn) {
  // 7 whole batches of 2 in 3 lanes of 2; one batch and a sample are left.
  const std::int64_t expected[] = {0, 1, 4, 5, 8, 9, 2, 3, 6, 7, 10, 11, 12, 13, 14};
  for (std::int64_t i = 0; i < 15; ++i)
    EXPECT_EQ(position_without_lanes(i, 15, 2, 3), expected[i]) << i;
}

TEST(Lanes, EachPositionComesOnce) {
  for (std::int64_t samples : {1, 10, 47, 48})
    for (std::int64_t size : {1, 3, 16, 100})
      for (std::int64_t lanes : {1, 2, 5, 64}) {
        std::set<std::int64_t> seen;
        for (std::int64_t i = 0; i < samples; ++i)
          seen.insert(position_without_lanes(i, samples, size, lanes));
        EXPECT_EQ(seen.size(), static_cast<std::size_t>(samples));
        EXPECT_EQ(*seen.rbegin(), samples - 1);
      }
}

TEST(Lanes, OfManySamplesDoNotOverflow) {
  const std::int64_t last = (INT64_C(1) << 60) - 1;
  EXPECT_EQ(position_without_lanes(last, last + 1, 1, 1 << 20), last);
}

}  // namespace lanes_test
}  // namespace batchfs
