#pragma once
// Latency and rate of the network, estimated from answers: the mean latency of recent windows of
// answers, and the best rate of windows, older ones weighted less.

#include <algorithm>
#include <cstdint>
#include <optional>

namespace batchfs {

/// Not thread-safe. Times are nanoseconds of any steady clock.
class NetworkSpeed {
 public:
  /// An answer is complete: its latency in seconds, and the bytes of all answers.
  void note(std::int64_t now, double latency, std::uint64_t bytes) {
    answers_ = std::min(answers_ + 1, kAnswersAveraged);
    latency_ += (latency - latency_) / answers_;
    const std::int64_t window = now - window_start_;
    if (window < kRateWindow) return;
    // The recent maximum: the rate under little demand does not show the network's speed.
    if (window_start_ != 0)
      rate_ = std::max(rate_ * kRateFades, static_cast<double>(bytes - window_bytes_) /
                                               static_cast<double>(window) * 1e9);
    window_start_ = now;
    window_bytes_ = bytes;
  }

  /// Seconds, and bytes per second; nullopt before the first windows.
  struct Known {
    double latency, rate;
  };
  std::optional<Known> known() const {
    return rate_ > 0 ? std::optional(Known{latency_, rate_}) : std::nullopt;
  }

 private:
  static constexpr double kAnswersAveraged = 64;
  static constexpr std::int64_t kRateWindow = 250'000'000;
  static constexpr double kRateFades = 0.99;

  double latency_ = 0, rate_ = 0, answers_ = 0;
  std::int64_t window_start_ = 0;
  std::uint64_t window_bytes_ = 0;
};

}  // namespace batchfs
