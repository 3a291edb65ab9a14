#pragma once
// The number of requests in flight: grows while that increases throughput, halves when the server
// reports too many (AIMD, with throughput as the sign that more still helps).

#include <algorithm>
#include <cstdint>

namespace batchfs {

/// Not thread-safe. Times are nanoseconds of any steady clock.
class ConcurrencyLimit {
 public:
  ConcurrencyLimit(int first, int most)
      : first_(first), most_(std::max(first, most)), limit_(first) {}

  int limit() const { return limit_; }

  /// A request ended. `saturated`: others wait for their turn.
  void finished(std::int64_t now, std::uint64_t bytes, bool throttled, bool saturated);

  /// This process cannot have more than `most` in flight now.
  void lower(std::int64_t now, int most) {
    limit_ = std::clamp(most, 1, limit_);
    held_until_ = now + kHold;
    best_rate_ = 0;
  }

 private:
  static constexpr std::int64_t kWindow = 250'000'000;
  static constexpr std::int64_t kHold =
      1'000'000'000;  // answers to requests already sent do not count twice
  static constexpr int kMinLimit = 4;
  /// A request counts as this many bytes more, so that small objects have a throughput, too.
  static constexpr double kRequestBytes = 16384;

  const int first_, most_;
  int limit_;
  std::int64_t window_start_ = 0, held_until_ = 0;
  double window_work_ = 0;
  double best_rate_ = 0;  // at a smaller limit
};

inline void ConcurrencyLimit::finished(std::int64_t now, std::uint64_t bytes, bool throttled,
                                       bool saturated) {
  if (throttled) {
    if (now >= held_until_) {
      limit_ = std::max(kMinLimit, limit_ / 2);
      held_until_ = now + kHold;
      best_rate_ = 0;
    }
    window_start_ = now;
    window_work_ = 0;
    return;
  }
  if (window_start_ == 0) window_start_ = now;
  window_work_ += static_cast<double>(bytes) + kRequestBytes;
  if (now - window_start_ < kWindow) return;
  const double rate = window_work_ / static_cast<double>(now - window_start_);
  window_start_ = now;
  window_work_ = 0;
  if (!saturated || now < held_until_) return;
  if (limit_ < first_) {  // back from a throttled time, in small steps
    limit_ = std::min(first_, limit_ + std::max(1, limit_ / 8));
  } else if (rate > best_rate_ * 1.05) {
    best_rate_ = rate;
    limit_ = std::min(most_, limit_ + std::max(4, limit_ / 4));
  }
}

}  // namespace batchfs
