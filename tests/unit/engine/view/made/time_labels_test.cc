#include "engine/view/made/time_labels.h"

#include <cmath>

#include <gmock/gmock.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace time_labels_test {

using testing::HasSubstr;

constexpr std::int64_t kHour = INT64_C(3'600'000'000'000);

struct Labels : testing::Test {
  Labels() {
    data.declare("a", "<f4", {"time", "other", "x"}, {3, 2, 4}, {3, 2, 4})
        .index<std::int64_t>("time", "<i8", {0, 6, 24}, {{"units", "hours since 2020-02-29"}})
        .index<std::int64_t>("other", "<i8", {0, 1}, {{"units", "days since 2000-01-01"}})
        .index<std::int64_t>("x", "<i8", {0, 1, 2, 3})
        .index<std::int64_t>("step", "<i8", {-6, 0, 30}, {{"units", "hours"}})
        .index<double>("lead", "<f8", {0.5, NAN}, {{"units", "days"}})
        .add<std::int64_t>("valid", "<i8", {"x", "time"}, {4, 3},
                           {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
                           {{"units", "days since 1970-01-01"}});
  }
  std::string refusal(const std::string& dim) const {
    const auto dataset = data.dataset();
    return error_of([&] { TimeLabels(*dataset, {{dim}, ""}, "p"); }).why();
  }
  MemoryData data;
};

TEST_F(Labels, AreShareOfTheDayAndDayOfTheYear) {
  const auto dataset = data.dataset();
  const TimeLabels labels(*dataset, {{"time"}, ""}, "p");
  EXPECT_EQ(labels.at(1).seconds, 1582934400 + 6 * 3600);
  EXPECT_EQ(labels.at(1).of_day, 0.25);
  EXPECT_EQ(labels.at(1).day, 60);
  EXPECT_EQ(labels.at(2).day, 61);
  EXPECT_EQ(labels.at(2, -kHour).day, 60);
  EXPECT_EQ(labels.at(2, -kHour).of_day, 23.0 / 24);
  EXPECT_EQ(labels.at(1, 18 * kHour).day, 61);
  EXPECT_EQ(labels.at(1, 18 * kHour).of_day, 0);
}

TEST_F(Labels, OfNoTimeAreNotANumber) {
  EXPECT_TRUE(std::isnan(instant_of({INT64_MIN, 0}).seconds));
}

TEST_F(Labels, OfAForecastAreStartAndLeadTime) {
  const auto dataset = data.dataset();
  const TimeLabels labels(*dataset, {{"time", "step"}, ""}, "p");
  EXPECT_EQ(labels.rank(), 2);
  EXPECT_EQ(labels.number({2, 1, 7}), 7);
  EXPECT_EQ(labels.at(0).seconds, 1582934400 - 6 * 3600);
  EXPECT_EQ(labels.at(0).day, 59);
  EXPECT_EQ(labels.at(7).seconds, 1582934400 + 24 * 3600);
  EXPECT_EQ(labels.at(8, -kHour).seconds, 1582934400 + 53 * 3600);
  const TimeLabels days(*dataset, {{"time", "lead"}, ""}, "p");
  EXPECT_EQ(days.at(2).seconds, 1582934400 + 18 * 3600);
  EXPECT_TRUE(std::isnan(days.at(3).seconds));
}

TEST_F(Labels, OfAVariableAreItsValues) {
  const auto dataset = data.dataset();
  const TimeLabels labels(*dataset, {{"x", "time"}, "valid"}, "p");
  EXPECT_EQ(labels.number({3, 1}), 10);
  EXPECT_EQ(labels.at(10).seconds, 10 * 86400);
}

TEST_F(Labels, OfOtherTypesAreRefused) {
  EXPECT_THAT(refusal("x"), HasSubstr("p: the labels of 'x' are int64"));
}

}  // namespace time_labels_test
}  // namespace batchfs
