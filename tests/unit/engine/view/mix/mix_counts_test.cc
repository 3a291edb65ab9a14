#include "engine/view/mix/mix_counts.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace mix_counts_test {

using testing::ElementsAre;
using testing::HasSubstr;

/// Views `a`, `b`, ... with these members each, of 900, 90 and 10 samples.
MixSchedule schedule(const std::vector<std::string>& members, const std::string& more = "") {
  std::string text;
  for (std::size_t i = 0; i < members.size(); ++i)
    text += (i > 0 ? ", \"" : "\"") + std::string(1, static_cast<char>('a' + i)) +
            R"(": {"view": "f")" + (members[i].empty() ? "" : ", " + members[i]) + "}";
  std::vector<std::int64_t> samples{900, 90, 10};
  samples.resize(members.size());
  return schedule_of(parse_mix_spec("{\"mix\": {" + text + "}" + more + "}", "m", "f"), samples);
}

TEST(MixCounts, WeightsAreRatesOfABlock) {
  const MixSchedule made = schedule({"\"weight\": 7", "\"weight\": 3"});
  EXPECT_EQ(made.block(), 1024);
  EXPECT_EQ(made.counts().period, 1024);
  EXPECT_THAT(made.counts().rates, ElementsAre(717, 307));
  EXPECT_THAT(made.counts().per_epoch, ElementsAre(693, 297));  // of 990
}

TEST(MixCounts, WithoutAnyEachSampleComesOnce) {
  const MixSchedule made = schedule({"", "", ""});
  EXPECT_THAT(made.counts().per_epoch, ElementsAre(900, 90, 10));
  EXPECT_EQ(made.positions(), 1000);
}

TEST(MixCounts, TemperatureMakesSharesMoreEqual) {
  const MixSchedule made =
      schedule({"", "", ""}, R"(, "temperature": 2, "batch": {"size": 1, "block": 100})");
  EXPECT_THAT(made.counts().rates, ElementsAre(70, 22, 8));  // of 30 : 9.487 : 3.162
}

TEST(MixCounts, RepeatAndSamplesAreExact) {
  EXPECT_THAT(schedule({"\"repeat\": 0.5", "\"repeat\": 3"}).counts().per_epoch,
              ElementsAre(450, 270));
  EXPECT_THAT(schedule({"\"samples\": 5", "\"samples\": 100000"}).counts().per_epoch,
              ElementsAre(5, 100000));
}

TEST(MixCounts, TheBlockOfCountsGrowsUntilEachViewIsInIt) {
  EXPECT_EQ(schedule({"\"samples\": 5", "\"samples\": 100000"}).block(), 32768);
  EXPECT_EQ(schedule({"\"samples\": 500", "\"samples\": 500"}).block(), 1024);
}

TEST(MixCounts, ByBatchPositionsAreBatches) {
  const MixSchedule weighted =
      schedule({"\"weight\": 1", "\"weight\": 1"},
               R"(, "batch": {"size": 20, "mixing": "batch", "block": 4})");
  EXPECT_EQ(weighted.positions(), 50);  // 990 samples, rounded up
  const MixSchedule counted = schedule({"\"samples\": 41", "\"samples\": 20"},
                                       R"(, "batch": {"size": 20, "mixing": "batch"})");
  EXPECT_THAT(counted.counts().per_epoch, ElementsAre(3, 1));
}

TEST(MixCounts, Refusals) {
  const auto refused = [](const std::vector<std::string>& members, const std::string& more = "") {
    return error_of([&] { schedule(members, more); }).why();
  };
  EXPECT_THAT(refused({"\"weight\": 5000", "\"weight\": 1"}),
              HasSubstr("mix.b: its share of 1024"));
  EXPECT_THAT(refused({"\"weight\": 9", "\"weight\": 1"},
                      R"(, "batch": {"size": 4, "mixing": "stratified"})"),
              HasSubstr("mix.b: with \"stratified\""));
  EXPECT_THAT(refused({"\"samples\": 5", "\"samples\": 100000"},
                      R"(, "batch": {"size": 4, "block": 1024})"),
              HasSubstr("mix.a: its share"));
  EXPECT_THAT(refused({"\"samples\": 1152921504606846976", "\"samples\": 1152921504606846976"}),
              HasSubstr("more than 2^60"));
  EXPECT_THAT(refused({"\"repeat\": 1e300"}), HasSubstr("more than 2^60"));
  EXPECT_THAT(refused({"\"repeat\": 0.0001"}), HasSubstr("no samples"));
}

}  // namespace mix_counts_test
}  // namespace batchfs
