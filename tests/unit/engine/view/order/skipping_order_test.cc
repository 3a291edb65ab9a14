#include "engine/view/order/skipping_order.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

namespace batchfs {
namespace skipping_order_test {

using List = std::vector<std::int64_t>;

SampleIndex index_of(std::int64_t windows, const std::function<bool(std::int64_t)>& skipped) {
  MissingMarks marks(windows);
  for (std::int64_t i = 0; i < windows; ++i)
    if (skipped(i)) marks.mark(i);
  return marks.index();
}

/// The order of batchfs-view(5): lists of the remaining samples of each group, and of the others.
List expected(const Order& order, const ChunkGroups& groups, const SampleIndex& kept,
              std::int64_t epoch) {
  const auto e = static_cast<std::uint64_t>(epoch);
  const std::int64_t count = groups.count();
  const auto left = [&](std::int64_t from, std::int64_t to) {
    List list;
    for (std::int64_t place = from; place < to; ++place)
      if (kept.contains(groups.sample(place))) list.push_back(groups.sample(place));
    return list;
  };
  const auto mixed = [&](const List& list, std::uint64_t stream) {
    List result;
    const Permutation permutation(static_cast<std::int64_t>(list.size()), order.seed, e, stream);
    for (std::size_t i = 0; i < list.size(); ++i)
      result.push_back(list[static_cast<std::size_t>(permutation(static_cast<std::int64_t>(i)))]);
    return result;
  };
  List all;
  const Permutation group(count, order.seed, e);
  std::uint64_t stream = 2;
  for (std::int64_t k = 0; k < count; ++stream) {
    List run;
    for (const std::int64_t end = std::min(count, k + std::min(order.buffer, count)); k < end;
         ++k) {
      const List more = left(groups.begin(group(k)), groups.begin(group(k) + 1));
      run.insert(run.end(), more.begin(), more.end());
    }
    run = mixed(run, stream);
    all.insert(all.end(), run.begin(), run.end());
  }
  const List rest = mixed(left(groups.in_groups(), groups.samples()), 1);
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

TEST(SkippingOrder, GroupsStayTogetherWhateverIsLeftOfThem) {
  const std::vector<ChunkGroups> shapes = {{{{200, 0, 1}}},
                                           {{{203, 3, 20}}},
                                           {{{12, 1, 3}, {19, 0, 5}}},
                                           {{{9, 0, 9}, {23, 2, 7}, {3, 1, 1}}},
                                           {{{90, 0, 1, {0, 10, 40, 41, 90}}}},
                                           {{{12, 0, 3, {0, 3, 12}}, {19, 1, 5}}},
                                           {{{20, 3, 4}, {9, 0, 1, {0, 2, 3, 9}}}}};
  const std::vector<std::function<bool(std::int64_t)>> skips = {
      [](std::int64_t) { return false; }, [](std::int64_t i) { return i % 3 == 0; },
      [](std::int64_t i) { return i / 20 % 4 != 1; },  // whole groups
      [](std::int64_t i) { return i != 77; }};
  for (const ChunkGroups& groups : shapes)
    for (const auto& skipped : skips)
      for (std::int64_t window : {INT64_C(1), INT64_C(3), INT64_C(20), INT64_C(1) << 20})
        for (std::int64_t epoch : {0, 5}) {
          const SampleIndex kept = index_of(groups.samples(), skipped);
          const Order order{Order::Shuffle::block, 11, window};
          const SkippingBlockOrder skipping(order, groups, &kept);
          List actual;
          for (std::int64_t i = 0; i < kept.samples(); ++i)
            actual.push_back(skipping.window(i, epoch));
          ASSERT_EQ(actual, expected(order, groups, kept, epoch))
              << groups.axes.size() << " " << window;
          std::sort(actual.begin(), actual.end());
          for (std::int64_t s = 0; s < kept.samples(); ++s)
            ASSERT_EQ(actual[static_cast<std::size_t>(s)], kept.window(s));
        }
}

TEST(SkippingOrder, WithNothingSkippedIsTheBlockOrder) {
  const ChunkGroups groups{{{20, 3, 4}, {3, 0, 3}}};
  const Order order{Order::Shuffle::block, 4, 2};
  const SampleIndex kept = index_of(60, [](std::int64_t) { return false; });
  const SkippingBlockOrder skipping(order, groups, &kept), all(order, groups, nullptr);
  for (std::int64_t epoch = 0; epoch < 7; ++epoch)  // more than are remembered
    for (std::int64_t i = 0; i < 60; ++i)
      for (const auto* each : {&skipping, &all})
        ASSERT_EQ(each->window(i, epoch), order.sample(i, 60, epoch, groups));
}

}  // namespace skipping_order_test
}  // namespace batchfs
