#include "engine/view/reach.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace reach_test {

TEST(MarkedCounts, CountAsASearchDoes) {
  const std::vector<bool> marked{true, false, false, true, true, false, true};
  const auto length = static_cast<std::int64_t>(marked.size());
  for (const bool circle : {false, true}) {
    const MarkedCounts counts(marked, circle);
    EXPECT_EQ(counts.all(), 4);
    for (std::int64_t begin = -20; begin < 30; ++begin)
      for (std::int64_t end = begin - 1; end < 40; ++end) {
        std::int64_t expected = 0;
        for (std::int64_t i = begin; i < end; ++i)
          if (circle || (i >= 0 && i < length))
            expected += marked[static_cast<std::size_t>(((i % length) + length) % length)] ? 1 : 0;
        ASSERT_EQ(counts.count(begin, end), expected) << begin << " " << end;
      }
  }
}

TEST(MarkedCounts, OfNothing) { EXPECT_EQ(MarkedCounts({}, true).count(-3, 5), 0); }

}  // namespace reach_test
}  // namespace batchfs
