#pragma once
// A histogram of durations, from a microsecond to a minute and a half.

#include <array>
#include <cstddef>
#include <cstdint>

namespace batchfs {

/// Not thread-safe.
class LatencyHistogram {
 public:
  /// Upper ends of the buckets in nanoseconds: 1, 1.5, 2, 3, 5 and 7 of each power of ten.
  static constexpr std::size_t kEdges = 48;
  static const std::array<std::uint64_t, kEdges>& edges();

  void add(std::uint64_t nanoseconds);

  std::uint64_t count() const { return count_; }
  std::uint64_t sum() const { return sum_; }  // nanoseconds
  std::uint64_t max() const { return max_; }
  double mean() const {
    return count_ == 0 ? 0 : static_cast<double>(sum_) / static_cast<double>(count_);
  }
  /// The duration that the share `q` did not exceed: nanoseconds, known to within a bucket. 0
  /// without any.
  double quantile(double q) const;
  /// How many took at most `nanoseconds`, which is an edge.
  std::uint64_t at_most(std::uint64_t nanoseconds) const;

 private:
  std::array<std::uint64_t, kEdges + 1> buckets_{};  // the last: longer
  std::uint64_t count_ = 0, sum_ = 0, max_ = 0;
};

}  // namespace batchfs
