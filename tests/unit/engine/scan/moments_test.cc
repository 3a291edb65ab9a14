#include "engine/scan/moments.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace batchfs {
namespace moments_test {

/// In blocks of this size.
Moments moments_of(const std::vector<double>& values, std::size_t block_size) {
  TwoPassMoments result;
  for (int pass = 0; pass < 2; ++pass) {
    if (pass == 1) result.next_pass();
    for (std::size_t i = 0; i < values.size(); i += block_size) {
      std::vector<double> block(
          values.begin() + static_cast<std::ptrdiff_t>(i),
          values.begin() + static_cast<std::ptrdiff_t>(std::min(i + block_size, values.size())));
      const std::size_t size = block.size();
      block.resize((size + 7) / 8 * 8, -1e300);  // storage after the end
      result.add(std::span(block.data(), size));
    }
  }
  return result.moments();
}

TEST(Moments, OfNumbersWithGaps) {
  // numpy: v = [3, nan, -1, 8.5, nan, 2]; nanmean 3.125, nanstd 3.4346579160085215
  const Moments m = moments_of({3, NAN, -1, 8.5, NAN, 2}, 4);
  EXPECT_EQ(m.count, 4);
  EXPECT_EQ(m.nan, 2);
  EXPECT_EQ(m.mean, 3.125);
  EXPECT_NEAR(m.std(), 3.4346579160085215, 1e-15);
  EXPECT_EQ(m.min, -1);
  EXPECT_EQ(m.max, 8.5);
}

TEST(Moments, OfNothing) {
  const Moments m = moments_of({NAN, NAN}, 8);
  EXPECT_EQ(m.count, 0);
  EXPECT_EQ(m.nan, 2);
  EXPECT_TRUE(std::isnan(m.std()));
}

TEST(Moments, SmallVariationOfALargeNumber) {
  // 1e9 + {0, 1, 2, ...}: the textbook formula with sums of squares loses all digits here.
  std::vector<double> values;
  for (int i = 0; i < 10000; ++i) values.push_back(1e9 + (i % 3) * 1e-3);
  const Moments m = moments_of(values, 1024);
  double mean = 0, square = 0;
  for (double v : values) mean += (v - 1e9) / 10000;
  for (double v : values) square += (v - 1e9 - mean) * (v - 1e9 - mean) / 10000;
  EXPECT_NEAR(m.mean - 1e9, mean, 2e-7);
  EXPECT_NEAR(m.std() / std::sqrt(square), 1, 1e-9);
}

TEST(Moments, InfinityIsNoNumberToHide) {
  const Moments m = moments_of({1, INFINITY, 2}, 8);
  EXPECT_EQ(m.mean, INFINITY);
  EXPECT_EQ(m.max, INFINITY);
  EXPECT_TRUE(std::isnan(m.std()));
}

TEST(Moments, PartsGiveTheWhole) {
  std::vector<double> all;
  MergedMoments merged;
  std::uint64_t state = 1;
  for (int part = 0; part < 50; ++part) {
    std::vector<double> values;
    for (int i = 0; i < 7 * part; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      values.push_back(static_cast<double>(state >> 40) / 1e4 - 300 + part);
    }
    all.insert(all.end(), values.begin(), values.end());
    merged.add(moments_of(values, 16));
  }
  const Moments whole = moments_of(all, 4096), m = merged.moments();
  EXPECT_EQ(m.count, whole.count);
  EXPECT_NEAR(m.mean / whole.mean, 1, 1e-14);
  EXPECT_NEAR(m.std() / whole.std(), 1, 1e-14);
  EXPECT_EQ(m.min, whole.min);
  EXPECT_EQ(m.max, whole.max);
}

TEST(Moments, ACompensatedSumKeepsWhatIsSmall) {
  CompensatedSum sum;
  sum.add(1);
  sum.add(1e100);
  sum.add(1);
  sum.add(-1e100);
  EXPECT_EQ(sum.value(), 2);
}

TEST(Moments, MergingMergedOnesLosesNoDigits) {
  // Small differences of a large mean: four groups of parts, merged, and then merged.
  MergedMoments all, groups[4];
  for (int i = 0; i < 400; ++i) {
    const Moments part{90 + i % 7, i % 2, 101325 + (i % 13) * 0.1, 0.5 * i, 101000.0 - i, 101400};
    all.add(part);
    groups[i / 100].add(part);
  }
  MergedMoments merged;
  merged.add(MergedMoments());
  for (const MergedMoments& group : groups) merged.add(group);
  const Moments a = merged.moments(), b = all.moments();
  EXPECT_EQ(a.count, b.count);
  EXPECT_EQ(a.nan, b.nan);
  EXPECT_EQ(a.min, b.min);
  EXPECT_EQ(a.max, b.max);
  EXPECT_DOUBLE_EQ(a.mean, b.mean);
  EXPECT_NEAR(a.std() / b.std(), 1, 1e-11);
}

TEST(Moments, PartsKeepTheDigitsThatTheirMeansLose) {
  // 1e9 + small numbers, in parts of 7: merged parts against all numbers at once.
  MergedMoments merged;
  std::vector<double> all;
  for (int part = 0; part < 50; ++part) {
    TwoPassMoments two;
    std::vector<double> values(8, NAN);
    for (int i = 0; i < 7; ++i) {
      values[i] = 1e9 + ((part * 7 + i) * 37 % 101) * 1e-3;
      all.push_back(values[i]);
    }
    two.add(std::span(values.data(), 7));
    two.next_pass();
    two.add(std::span(values.data(), 7));
    merged.add(two.merged());
  }
  const Moments wanted = moments_of(all, 1024), found = merged.moments();
  EXPECT_EQ(found.count, wanted.count);
  EXPECT_DOUBLE_EQ(found.mean, wanted.mean);
  EXPECT_NEAR(found.std() / wanted.std(), 1, 1e-13);
}

}  // namespace moments_test
}  // namespace batchfs
