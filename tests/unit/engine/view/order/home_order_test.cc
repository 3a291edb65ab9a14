#include "engine/view/order/home_order.h"

#include <algorithm>
#include <functional>
#include <set>

#include <gtest/gtest.h>

namespace batchfs {
namespace home_order_test {

using List = std::vector<std::int64_t>;

Order home(std::int64_t lanes, std::int64_t buffer) {
  return {Order::Shuffle::block, 11, buffer, lanes, true};
}

List pass_of(const HomeOrder& order, std::int64_t samples, std::int64_t pass) {
  List list;
  for (std::int64_t i = 0; i < samples; ++i) list.push_back(order.window(i, pass));
  return list;
}

/// The samples of each lane, without the batches that are left over.
std::vector<std::set<std::int64_t>> lanes_of(const List& list, std::int64_t size,
                                             std::int64_t lanes) {
  std::vector<std::set<std::int64_t>> result(static_cast<std::size_t>(lanes));
  const auto samples = static_cast<std::int64_t>(list.size());
  for (std::int64_t i = 0; i < samples / size / lanes * lanes * size; ++i)
    result[static_cast<std::size_t>(i / size % lanes)].insert(list[static_cast<std::size_t>(i)]);
  return result;
}

TEST(HomeOrder, ALaneHasTheSameSamplesInEveryPassInAnotherOrder) {
  const std::vector<ChunkGroups> shapes = {
      {{{200, 0, 1}}}, {{{203, 3, 20}}}, {{{12, 1, 3}, {19, 0, 5}}}};
  const std::vector<std::function<bool(std::int64_t)>> skips = {
      {},
      [](std::int64_t i) { return i % 3 == 0; },
      [](std::int64_t i) { return i / 20 % 4 == 1; }};
  for (const ChunkGroups& groups : shapes)
    for (const auto& skipped : skips)
      for (std::int64_t lanes : {1, 2, 7, 300})
        for (std::int64_t size : {1, 4, 9, 500})
          for (std::int64_t buffer : {INT64_C(1), INT64_C(3), INT64_C(1) << 20}) {
            MissingMarks marks(groups.samples());
            for (std::int64_t i = 0; skipped && i < groups.samples(); ++i)
              if (skipped(i)) marks.mark(i);
            const SampleIndex kept = marks.index();
            const HomeOrder order(home(lanes, buffer), groups, size, skipped ? &kept : nullptr);
            const List first = pass_of(order, kept.samples(), 0);
            List sorted = first;
            std::sort(sorted.begin(), sorted.end());
            for (std::int64_t s = 0; s < kept.samples(); ++s)
              ASSERT_EQ(sorted[static_cast<std::size_t>(s)], kept.window(s));
            for (std::int64_t pass : {1, 2, 3, 4, 5, 9}) {  // more than are remembered
              const List other = pass_of(order, kept.samples(), pass);
              ASSERT_EQ(lanes_of(other, size, lanes), lanes_of(first, size, lanes));
              if (kept.samples() / size / lanes > 1) {
                ASSERT_NE(other, first);
              }
            }
          }
}

TEST(HomeOrder, OfManySamplesDoesNotOverflow) {
  const ChunkGroups groups{
      {{INT64_C(1) << 40, 0, INT64_C(1) << 24}, {INT64_C(1) << 20, 0, INT64_C(1) << 20}}};
  const HomeOrder order(home(64, INT64_C(1) << 20), groups, 32, nullptr);
  std::set<std::int64_t> seen;
  for (std::int64_t i = 0; i < 1000; ++i) seen.insert(order.window(i * (INT64_C(1) << 50), 3));
  EXPECT_EQ(seen.size(), 1000u);
  EXPECT_GE(*seen.begin(), 0);
  EXPECT_LT(*seen.rbegin(), INT64_C(1) << 60);
}

}  // namespace home_order_test
}  // namespace batchfs
