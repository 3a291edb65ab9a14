#pragma once
// Quantiles of numbers in bounded memory, from parts that are merged in any order.
//
// Numbers are counted in buckets: of all doubles in ascending order, each 2^shift that follow one
// another are a bucket, so that its width is a share of the numbers in it. `shift` is the smallest
// one for which the numbers take no more than a fixed count of buckets. Since more numbers never
// take fewer buckets, it depends on the numbers alone, and so do all results, to the last bit: not
// on the order or the parts that they came in. Few distinct numbers have a bucket each, and their
// quantiles are exact.

#include <cstdint>
#include <span>
#include <vector>

namespace batchfs {

class QuantileSketch {
 public:
  static constexpr std::size_t kMaxBuckets = 1 << 16;

  struct Bucket {
    std::uint64_t key = 0;  // of a double in their order, less the low `shift` bits
    std::int64_t count = 0;
  };

  QuantileSketch() = default;
  /// At most this many buckets, 1 to kMaxBuckets.
  explicit QuantileSketch(std::size_t max_buckets) : max_buckets_(max_buckets) {}
  /// From the values of the accessors below. Throws corrupt for impossible buckets.
  QuantileSketch(std::size_t max_buckets, int shift, std::vector<Bucket> buckets);

  /// The buckets of `values`, ascending; NaN is left out. For add(): not under a lock.
  static std::vector<Bucket> count(std::span<const double> values, int shift);

  /// Buckets of `shift` or less than shift() is now. Throws corrupt past 2^62 numbers.
  void add(std::span<const Bucket> buckets, int shift);
  void add(const QuantileSketch& other);

  int shift() const { return shift_; }
  /// Ascending. Not thread-safe.
  const std::vector<Bucket>& buckets() const;

  /// The quantile 0 <= q <= 1, interpolated between two numbers as numpy's method "linear" does;
  /// NaN without numbers. It differs from the true one by at most `error`, but for rounding.
  struct Value {
    double value, error;
  };
  Value quantile(double q) const;

 private:
  void settle() const;
  void widen(int shift) const;
  Value number(std::int64_t place) const;

  std::size_t max_buckets_ = kMaxBuckets;
  std::int64_t total_ = 0;
  // pending_ is merged when it is longer than buckets_, or by the next accessor.
  mutable int shift_ = 0;
  mutable std::vector<Bucket> buckets_, pending_;  // pending_: of shift_, in any order
};

}  // namespace batchfs
