#include "engine/scan/quantiles.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include <gmock/gmock.h>

#include "engine/base/error.h"

namespace batchfs {
namespace quantiles_test {

using Bucket = QuantileSketch::Bucket;

std::vector<double> normal(std::size_t count, double mean, double deviation) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> numbers(mean, deviation);
  std::vector<double> values(count);
  for (double& value : values) value = numbers(random);
  return values;
}

void add(QuantileSketch& sketch, std::span<const double> values) {
  const int shift = sketch.shift();
  sketch.add(QuantileSketch::count(values, shift), shift);
}

QuantileSketch sketch_of(std::span<const double> values, std::size_t parts = 1,
                         std::size_t max_buckets = QuantileSketch::kMaxBuckets) {
  QuantileSketch sketch(max_buckets);
  const std::size_t size = (values.size() + parts - 1) / parts;
  for (std::size_t i = 0; i < values.size(); i += size)
    add(sketch, values.subspan(i, std::min(size, values.size() - i)));
  return sketch;
}

/// Like numpy's quantile; for values without NaN.
double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double place = q * static_cast<double>(values.size() - 1);
  const auto before = static_cast<std::size_t>(place);
  const double low = values[before], high = values[std::min(before + 1, values.size() - 1)];
  return low + (high - low) * (place - static_cast<double>(before));
}

bool same(const QuantileSketch& a, const QuantileSketch& b) {
  return a.shift() == b.shift() &&
         std::equal(
             a.buckets().begin(), a.buckets().end(), b.buckets().begin(), b.buckets().end(),
             [](const Bucket& x, const Bucket& y) { return x.key == y.key && x.count == y.count; });
}

TEST(Quantiles, OfFewDistinctNumbersAreExact) {
  const std::vector<double> values{3, -1, 2.5, 2.5, std::nan(""), -0.0, 0, 1e300};
  const QuantileSketch sketch = sketch_of(values);
  EXPECT_EQ(sketch.quantile(0).value, -1);
  EXPECT_EQ(sketch.quantile(1).value, 1e300);
  EXPECT_EQ(sketch.quantile(0.5).value, 2.5);
  EXPECT_EQ(sketch.quantile(0.25).value, 0);
  EXPECT_EQ(sketch.quantile(0.25).error, 0);
  EXPECT_EQ(sketch.buckets().size(), 5u);
}

TEST(Quantiles, OfNothingAreNaN) {
  EXPECT_TRUE(std::isnan(QuantileSketch().quantile(0.5).value));
  const double nan = std::nan("");
  EXPECT_TRUE(std::isnan(sketch_of({&nan, 1}).quantile(0.5).value));
}

TEST(Quantiles, StayWithinTheirError) {
  for (const auto& [mean, deviation] : {std::pair(280., 20.), {101325., 500.}, {0., 1e-5}}) {
    const std::vector<double> values = normal(300000, mean, deviation);
    const QuantileSketch sketch = sketch_of(values, 7);
    for (const double q : {0., 0.01, 0.25, 0.5, 0.75, 0.99, 1.}) {
      const QuantileSketch::Value found = sketch.quantile(q);
      EXPECT_LE(std::fabs(found.value - quantile(values, q)), found.error) << q;
      EXPECT_LE(found.error, deviation * 1e-3) << q;
    }
  }
}

TEST(Quantiles, DependOnTheNumbersAlone) {
  std::vector<double> values = normal(200000, -3, 100);
  const QuantileSketch whole = sketch_of(values, 1, 1000);
  EXPECT_GT(whole.shift(), 0);
  EXPECT_TRUE(same(whole, sketch_of(values, 999, 1000)));
  std::shuffle(values.begin(), values.end(), std::mt19937_64(1));
  EXPECT_TRUE(same(whole, sketch_of(values, 13, 1000)));
  QuantileSketch merged(1000);
  for (std::size_t i = 0; i < 5; ++i)
    merged.add(sketch_of(std::span(values).subspan(i * 40000, 40000), 3, 1000));
  EXPECT_TRUE(same(whole, merged));
}

TEST(Quantiles, AreReadFromTheirBuckets) {
  const QuantileSketch sketch = sketch_of(normal(5000, 0, 1), 1, 100);
  EXPECT_TRUE(same(sketch, QuantileSketch(100, sketch.shift(), sketch.buckets())));
  const auto refuses = [](int shift, std::vector<Bucket> buckets) {
    EXPECT_THROW(QuantileSketch(2, shift, std::move(buckets)), Error);
  };
  refuses(64, {});
  refuses(0, {{2, 1}, {1, 1}});
  refuses(0, {{1, 0}});
  refuses(0, {{1, INT64_MAX}});
  refuses(60, {{16, 1}});
  refuses(0, {{1, 1}, {2, 1}, {3, 1}});
}

}  // namespace quantiles_test
}  // namespace batchfs
