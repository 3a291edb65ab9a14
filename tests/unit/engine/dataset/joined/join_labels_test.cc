#include "engine/dataset/joined/join_labels.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace join_labels_test {

JoinLabels labels_of(const MemoryData& data) { return JoinLabels(data.dataset()->index("x")); }

TEST(JoinLabels, TimesOfAnyUnitAreNanoseconds) {
  const JoinLabels hours = labels_of(
      MemoryData().index<std::int64_t>("x", "<i8", {0, 6}, {{"units", "hours since 1970-01-01"}}));
  const JoinLabels days = labels_of(
      MemoryData().index<double>("x", "<f8", {0, 0.25}, {{"units", "days since 1970-01-01"}}));
  EXPECT_EQ(hours.form(), JoinLabels::Form::times);
  EXPECT_EQ(hours.values(), days.values());
  EXPECT_EQ(hours.extent(), "1970-01-01T00:00:00 to 1970-01-01T06:00:00");
}

TEST(JoinLabels, AreOrderedByValueWithoutNaN) {
  const JoinLabels labels = labels_of(MemoryData().index<double>("x", "<f8", {3, NAN, 1, 2}));
  EXPECT_EQ(labels.form(), JoinLabels::Form::numbers);
  EXPECT_EQ(labels.order(), (std::vector<std::int64_t>{2, 3, 0}));
  EXPECT_FALSE(labels.is_label(1));
  EXPECT_EQ(labels.size(), 4);
  EXPECT_FALSE(labels.duplicates());
}

TEST(JoinLabels, TwoThatAreEqualAreFound) {
  const JoinLabels labels = labels_of(MemoryData().index<std::int32_t>("x", "<i4", {5, 7, 5}));
  EXPECT_EQ(labels.form(), JoinLabels::Form::whole_numbers);
  EXPECT_EQ(labels.duplicates(), (std::pair<std::int64_t, std::int64_t>{0, 2}));
  EXPECT_EQ(labels.as_numbers().values(), JoinLabels::Values(JoinLabels::Numbers{5, 7, 5}));
}

TEST(JoinLabels, IntegersAreExact) {
  const JoinLabels labels = labels_of(MemoryData().index<std::uint64_t>(
      "x", "<u8", {UINT64_MAX, 599686042433355776, 599686042433355775}));
  EXPECT_EQ(labels.form(), JoinLabels::Form::whole_numbers);
  EXPECT_FALSE(labels.duplicates());
  EXPECT_EQ(labels.order(), (std::vector<std::int64_t>{2, 1, 0}));
  EXPECT_FALSE(labels.as_numbers().duplicates());
}

TEST(JoinLabels, OfNothing) {
  const JoinLabels labels = labels_of(MemoryData().index<double>("x", "<f8", {}));
  EXPECT_EQ(labels.size(), 0);
  EXPECT_EQ(labels.extent(), "nothing");
}

}  // namespace join_labels_test
}  // namespace batchfs
