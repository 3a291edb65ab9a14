#include "engine/view/group_counts.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace group_counts_test {

TEST(GroupCounts, WithoutSkippedWindowsAreProducts) {
  const GroupCounts counts(5, 3, nullptr, [](std::int64_t k) { return 4 - k; });
  EXPECT_EQ(counts.before(5), 15);
  EXPECT_EQ(counts.find(7), std::pair(INT64_C(2), INT64_C(6)));
  EXPECT_EQ(counts.place(7), 2 * 3 + 1);
}

TEST(GroupCounts, AreThoseOfAList) {
  constexpr std::int64_t kGroups = 100, kWindows = 7;
  MissingMarks marks(kGroups * kWindows);
  for (std::int64_t place = 0; place < kGroups * kWindows; ++place)
    if (place % 3 == 0 || place / kWindows % 20 < 9) marks.mark(place);  // groups with none, too
  const SampleIndex kept = marks.index();
  const auto at = [](std::int64_t k) { return k * 37 % kGroups; };
  const GroupCounts counts(kGroups, kWindows, &kept, at);
  std::int64_t i = 0;
  for (std::int64_t k = 0; k < kGroups; ++k) {
    ASSERT_EQ(counts.before(k), i);
    const std::int64_t before = i;
    for (std::int64_t place = at(k) * kWindows; place < (at(k) + 1) * kWindows; ++place) {
      if (!kept.contains(place)) continue;
      ASSERT_EQ(counts.find(i), std::pair(k, before));
      ASSERT_EQ(counts.place(i++), place);
    }
  }
  EXPECT_EQ(counts.before(kGroups), i);
}

}  // namespace group_counts_test
}  // namespace batchfs
