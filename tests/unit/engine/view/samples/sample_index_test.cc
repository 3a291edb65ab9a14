#include "engine/view/samples/sample_index.h"

#include <thread>

#include <gtest/gtest.h>

#include "engine/base/error.h"

namespace batchfs {
namespace sample_index_test {

/// All windows except those for which `skipped` returns true.
template <class Skipped>
SampleIndex index_of(std::int64_t windows, Skipped skipped) {
  MissingMarks marks(windows);
  for (std::int64_t i = 0; i < windows; ++i)
    if (skipped(i)) marks.mark(i);
  return marks.index();
}

TEST(SampleIndex, FindsEverySample) {
  const std::int64_t counts[] = {1, 63, 64, 65, 511, 512, 513, 5000};
  for (std::int64_t windows : counts)
    for (std::int64_t step : {2, 3, 7, 64, 600}) {
      const SampleIndex index =
          index_of(windows, [&](std::int64_t i) { return i % step == step / 2; });
      std::int64_t sample = 0;
      for (std::int64_t i = 0; i < windows; ++i) {
        ASSERT_EQ(index.samples_before(i), sample) << windows << " " << step;
        ASSERT_EQ(index.contains(i), i % step != step / 2);
        if (i % step == step / 2) continue;
        ASSERT_EQ(index.window(sample), i) << windows << " " << step;
        ++sample;
      }
      EXPECT_EQ(index.samples_before(windows), sample);
      EXPECT_EQ(index.samples(), sample);
      EXPECT_EQ(index.windows(), windows);
    }
}

TEST(SampleIndex, LongRunsWithoutSamples) {
  const SampleIndex index =
      index_of(100000, [](std::int64_t i) { return i != 7 && i != 70000 && i != 99999; });
  EXPECT_EQ(index.samples(), 3);
  EXPECT_EQ(index.window(0), 7);
  EXPECT_EQ(index.window(1), 70000);
  EXPECT_EQ(index.window(2), 99999);
}

TEST(SampleIndex, NothingIsLeft) {
  EXPECT_EQ(index_of(70, [](std::int64_t) { return true; }).samples(), 0);
}

TEST(SampleIndex, MarksMayComeFromSeveralThreads) {
  MissingMarks marks(10000);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&marks, t] {
      for (std::int64_t i = t; i < 10000; i += 5) marks.mark(i);
    });
  for (std::thread& thread : threads) thread.join();
  const SampleIndex index = marks.index();
  EXPECT_EQ(index.samples(), 2000);
  for (std::int64_t s = 0; s < 2000; ++s) ASSERT_EQ(index.window(s), 5 * s + 4);
}

TEST(SampleIndex, TooManyWindowsAreRefused) {
  EXPECT_THROW(MissingMarks((INT64_C(1) << 36) + 1), Error);
}

}  // namespace sample_index_test
}  // namespace batchfs
