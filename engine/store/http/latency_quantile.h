#pragma once
// The 99th percentile of recent latencies: past it, a request is slow enough to ask a second time.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace batchfs {

/// Quantiles of the last 256 samples. Not thread-safe.
class LatencyQuantile {
 public:
  void add(std::int64_t latency) {
    samples_[count_++ % samples_.size()] = latency;
    if (count_ >= kEnough && count_ % kEnough == 0) update();
  }

  /// nullopt until there are enough samples.
  std::optional<std::int64_t> p99() const {
    return count_ < kEnough ? std::nullopt : std::optional(p99_);
  }

 private:
  static constexpr std::size_t kEnough = 32;  // also how often it is computed anew

  void update() {
    std::array<std::int64_t, 256> sorted = samples_;
    const std::size_t n = std::min(count_, sorted.size());
    const auto nth = sorted.begin() + static_cast<std::ptrdiff_t>((n - 1) * 99 / 100);
    std::nth_element(sorted.begin(), nth, sorted.begin() + static_cast<std::ptrdiff_t>(n));
    p99_ = *nth;
  }

  std::array<std::int64_t, 256> samples_{};
  std::size_t count_ = 0;
  std::int64_t p99_ = 0;
};

}  // namespace batchfs
