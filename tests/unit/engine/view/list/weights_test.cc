#include "engine/view/list/weights.h"

#include <map>

#include <gtest/gtest.h>

namespace batchfs {
namespace weights_test {

TEST(Draws, EachSampleOccursAsItsShareRoundedUpOrDown) {
  const Draws draws({0, 2, 0, 5, 3, 0}, "samples.weights");
  for (std::int64_t epoch = 0; epoch < 20; ++epoch) {
    const double u = Draws::uniform(7, epoch);
    ASSERT_GE(u, 0);
    ASSERT_LE(u, 1);
    std::map<std::int64_t, int> counts;
    std::int64_t last = 0;
    for (std::int64_t j = 0; j < 15; ++j) {
      const std::int64_t sample = draws.sample(j, 15, u);
      ASSERT_GE(sample, last);
      last = sample;
      ++counts[sample];
    }
    EXPECT_EQ(counts.size(), 3U);
    EXPECT_EQ(counts[1], 3);
    EXPECT_TRUE(counts[3] == 7 || counts[3] == 8);
    EXPECT_TRUE(counts[4] == 4 || counts[4] == 5);
  }
}

TEST(Draws, TheEndOfTheLastDrawIsASampleWithAWeight) {
  const Draws draws({1, 1, 0}, "samples.weights");
  EXPECT_EQ(draws.sample(9, 10, 1.0), 1);
}

TEST(Draws, AnEpochHasItsOwnNumber) {
  EXPECT_NE(Draws::uniform(0, 0), Draws::uniform(0, 1));
  EXPECT_NE(Draws::uniform(0, 0), Draws::uniform(1, 0));
}

}  // namespace weights_test
}  // namespace batchfs
