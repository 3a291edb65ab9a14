#include "engine/store/http/concurrency_limit.h"

#include <gtest/gtest.h>

namespace batchfs {

namespace concurrency_limit_test {

constexpr std::int64_t kSecond = 1'000'000'000;

/// Sends requests of a megabyte for `seconds`, with a rate per second of `rate` of the limit at
/// that time.
template <class Rate>
void run(ConcurrencyLimit& limit, std::int64_t& now, double seconds, Rate rate,
         bool saturated = true) {
  const std::int64_t end = now + static_cast<std::int64_t>(seconds * kSecond);
  while (now < end) {
    now += static_cast<std::int64_t>(kSecond / rate(limit.limit()));
    limit.finished(now, 1 << 20, false, saturated);
  }
}

TEST(ConcurrencyLimit, GrowsWhileThroughputGrows) {
  ConcurrencyLimit limit(64, 256);
  std::int64_t now = kSecond;
  EXPECT_EQ(limit.limit(), 64);
  run(limit, now, 20, [](int n) { return 10.0 * n; });
  EXPECT_EQ(limit.limit(), 256);
}

TEST(ConcurrencyLimit, StaysWhereMoreDoesNotHelp) {
  ConcurrencyLimit limit(64, 256);
  std::int64_t now = kSecond;
  run(limit, now, 20, [](int n) { return 10.0 * std::min(n, 100); });
  EXPECT_GE(limit.limit(), 100);
  EXPECT_LT(limit.limit(), 160);
}

TEST(ConcurrencyLimit, StaysWhenNobodyWaits) {
  ConcurrencyLimit limit(64, 256);
  std::int64_t now = kSecond;
  run(
      limit, now, 20, [](int n) { return 10.0 * n; }, false);
  EXPECT_EQ(limit.limit(), 64);
}

TEST(ConcurrencyLimit, HalvesWhenThrottledAndComesBack) {
  ConcurrencyLimit limit(64, 256);
  std::int64_t now = kSecond;
  limit.finished(now, 0, true, true);
  EXPECT_EQ(limit.limit(), 32);
  for (int i = 0; i < 50; ++i) limit.finished(now + i, 0, true, true);
  EXPECT_EQ(limit.limit(), 32) << "one burst counts once";
  for (int i = 0; i < 20; ++i) limit.finished(now += 2 * kSecond, 0, true, true);
  EXPECT_EQ(limit.limit(), 4) << "and never to nothing";
  run(limit, now, 30, [](int n) { return 10.0 * n; });
  EXPECT_GE(limit.limit(), 64);
}

TEST(ConcurrencyLimit, IsLoweredToWhatIsPossible) {
  ConcurrencyLimit limit(64, 256);
  limit.lower(kSecond, 7);
  EXPECT_EQ(limit.limit(), 7);
  limit.lower(kSecond, 100);
  EXPECT_EQ(limit.limit(), 7) << "never raised";
  limit.lower(kSecond, 0);
  EXPECT_EQ(limit.limit(), 1);
}

}  // namespace concurrency_limit_test

}  // namespace batchfs
