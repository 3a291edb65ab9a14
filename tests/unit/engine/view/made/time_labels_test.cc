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
        .index<std::int64_t>("x", "<i8", {0, 1, 2, 3});
  }
  std::string refusal(const std::string& dim, const std::vector<std::string>& windows) {
    const auto dataset = data.dataset();
    const Error error = error_of([&] {
      if (dim.empty())
        time_dimension(*dataset, windows, "", "p");
      else
        TimeLabels(*dataset, dim, "p");
    });
    return error.why();
  }
  MemoryData data;
};

TEST_F(Labels, AreShareOfTheDayAndDayOfTheYear) {
  const auto dataset = data.dataset();
  const TimeLabels labels(*dataset, "time", "p");
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

TEST_F(Labels, AreThoseOfTheWindow) {
  const auto dataset = data.dataset();
  EXPECT_EQ(time_dimension(*dataset, {"x", "time"}, "", "p"), "time");
  EXPECT_EQ(time_dimension(*dataset, {"x"}, "other", "p"), "other");
  EXPECT_THAT(refusal("", {"x"}), HasSubstr("several dimensions of times: time, other"));
  EXPECT_THAT(refusal("x", {}), HasSubstr("p: the labels of 'x' are int64"));
}

}  // namespace time_labels_test
}  // namespace batchfs
