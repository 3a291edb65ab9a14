#include "engine/view/order/group_counts.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace group_counts_test {

TEST(GroupCounts, WithoutSkippedWindowsAreProducts) {
  const ChunkGroups groups{{{.positions = 15, .group = 3}}};
  const GroupCounts counts(5, groups, nullptr, [](std::int64_t k) { return 4 - k; });
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
  const ChunkGroups groups{{{.positions = kGroups * kWindows, .group = kWindows}}};
  const GroupCounts counts(kGroups, groups, &kept, at);
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

TEST(GroupCounts, OfGroupsThatDifferInSize) {
  const ChunkGroups groups{{{.positions = 9, .bounds = {0, 2, 3, 7, 9}}}};
  constexpr std::int64_t kOrder[] = {2, 0, 3, 1};
  const GroupCounts counts(4, groups, nullptr, [&](std::int64_t k) { return kOrder[k]; });
  EXPECT_EQ(counts.before(2), 6);
  EXPECT_EQ(counts.before(4), 9);
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < 9; ++i) places.push_back(counts.place(i));
  EXPECT_EQ(places, (std::vector<std::int64_t>{3, 4, 5, 6, 0, 1, 7, 8, 2}));
}

}  // namespace group_counts_test
}  // namespace batchfs
