#include "engine/view/mix/mix_schedule.h"

#include <map>
#include <set>

#include <gmock/gmock.h>

namespace batchfs {
namespace mix_schedule_test {

using testing::ElementsAre;

using Counts = MixSchedule::Counts;

std::vector<std::int64_t> count(const std::vector<MixSchedule::Place>& places, std::size_t views) {
  std::vector<std::int64_t> counts(views);
  for (const MixSchedule::Place& place : places) ++counts[place.component];
  return counts;
}

TEST(MixSchedule, EachBlockHasItsQuotas) {
  const MixSchedule schedule({{5, 3, 2}, 10, {17, 11, 7}}, 10, 4);
  EXPECT_EQ(schedule.positions(), 35);
  for (std::int64_t epoch : {0, 1, 9})
    for (std::int64_t first : {0, 10, 20})
      EXPECT_THAT(count(schedule.places(first, 10, epoch), 3), ElementsAre(5, 3, 2));
  EXPECT_THAT(count(schedule.places(30, 5, 0), 3), ElementsAre(2, 2, 1));
  EXPECT_THAT(count(schedule.places(0, 35, 3), 3), ElementsAre(17, 11, 7));
}

TEST(MixSchedule, QuotasOfCountsDifferByOneAndTheEpochIsExact) {
  const std::vector<std::int64_t> counts{1000, 333, 77, 0, 59};
  const MixSchedule schedule({counts, 1469, counts}, 100, 1);
  for (std::int64_t first = 0; first + 100 <= 1469; first += 100) {
    const std::vector<std::int64_t> quotas = count(schedule.places(first, 100, 0), 5);
    for (std::size_t c = 0; c < counts.size(); ++c)
      EXPECT_NEAR(static_cast<double>(quotas[c]), static_cast<double>(counts[c]) * 100 / 1469, 1.0);
  }
  EXPECT_EQ(count(schedule.places(0, 1469, 0), 5), counts);
}

TEST(MixSchedule, OrdinalsCountOverBlocksAndEpochs) {
  const MixSchedule schedule({{5, 3, 2}, 10, {17, 11, 7}}, 10, 4);
  std::map<std::size_t, std::set<std::int64_t>> ordinals;
  for (std::int64_t epoch = 0; epoch < 4; ++epoch)
    for (const MixSchedule::Place& place : schedule.places(0, 35, epoch))
      EXPECT_TRUE(
          ordinals[place.component].insert(static_cast<std::int64_t>(place.ordinal)).second);
  const std::int64_t counts[] = {17, 11, 7};
  for (std::size_t c = 0; c < 3; ++c) {
    EXPECT_EQ(*ordinals[c].begin(), 0);
    EXPECT_EQ(*ordinals[c].rbegin(), 4 * counts[c] - 1);
    EXPECT_EQ(static_cast<std::int64_t>(ordinals[c].size()), 4 * counts[c]);
  }
}

TEST(MixSchedule, APositionDoesNotDependOnWhereABatchBegins) {
  const MixSchedule schedule({{5, 3, 2}, 10, {17, 11, 7}}, 10, 4);
  const auto all = schedule.places(0, 35, 2);
  for (std::int64_t first = 0; first < 35; ++first) {
    const auto one = schedule.places(first, 1, 2).front();
    EXPECT_EQ(one.component, all[static_cast<std::size_t>(first)].component);
    EXPECT_EQ(one.ordinal, all[static_cast<std::size_t>(first)].ordinal);
  }
}

TEST(MixSchedule, BehindTheEndComesTheBeginning) {
  const MixSchedule schedule({{1, 1}, 2, {4, 3}}, 2, 0);
  const auto all = schedule.places(0, 7, 1), more = schedule.places(5, 4, 1);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(more[i].ordinal, all[(5 + i) % 7].ordinal);
}

TEST(MixSchedule, OfHugeViewsAndLateEpochsIsExact) {
  const std::int64_t huge = INT64_C(1) << 59;
  const MixSchedule schedule({{huge, huge - 1}, 2 * huge - 1, {huge, huge - 1}}, 1024, 3);
  const std::int64_t first = schedule.positions() / 1024 / 2 * 1024;
  EXPECT_THAT(count(schedule.places(first, 1024, 999'999'999), 2), ElementsAre(512, 512));
  const auto last = schedule.places(schedule.positions() - 1, 1, 999'999'999).front();
  EXPECT_GT(last.ordinal,
            static_cast<unsigned __int128>(999'999'999) * static_cast<unsigned __int128>(huge - 1));
}

TEST(LargestRemainder, GivesWhatIsLeftToTheLargestAndThenToTheEarlier) {
  EXPECT_THAT(largest_remainder({.5, .3, .2}, 8), ElementsAre(4, 2, 2));
  EXPECT_THAT(largest_remainder({.25, .25, .25, .25}, 6), ElementsAre(2, 2, 1, 1));
  EXPECT_THAT(largest_remainder({.7, .3}, 1024), ElementsAre(717, 307));
  EXPECT_THAT(largest_remainder({1, 0}, 0), ElementsAre(0, 0));
}

TEST(LargestRemainder, SumsToTheTotalBeyondWhatADoubleHolds) {
  const std::int64_t total = (INT64_C(1) << 60) - 1;
  for (const auto& shares : {std::vector<double>{.5, .5}, {1.0, 0.0}, {.1, .2, .7}}) {
    std::int64_t sum = 0;
    for (const std::int64_t part : largest_remainder(shares, total)) sum += part;
    EXPECT_EQ(sum, total);
  }
}

}  // namespace mix_schedule_test
}  // namespace batchfs
