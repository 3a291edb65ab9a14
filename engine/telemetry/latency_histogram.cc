#include "engine/telemetry/latency_histogram.h"

#include <algorithm>

namespace batchfs {

const std::array<std::uint64_t, LatencyHistogram::kEdges>& LatencyHistogram::edges() {
  static constexpr auto kTable = [] {
    constexpr std::uint64_t kTenths[] = {10, 15, 20, 30, 50, 70};
    std::array<std::uint64_t, kEdges> table{};
    std::uint64_t unit = 100;  // a tenth of a microsecond
    for (std::size_t i = 0; i < kEdges; ++i) {
      table[i] = unit * kTenths[i % 6];
      if (i % 6 == 5) unit *= 10;
    }
    return table;
  }();
  return kTable;
}

void LatencyHistogram::add(std::uint64_t nanoseconds) {
  const auto edge = std::lower_bound(edges().begin(), edges().end(), nanoseconds);
  ++buckets_[static_cast<std::size_t>(edge - edges().begin())];
  ++count_;
  sum_ += nanoseconds;
  max_ = std::max(max_, nanoseconds);
}

double LatencyHistogram::quantile(double q) const {
  if (count_ == 0) return 0;
  const double rank = q * static_cast<double>(count_);
  double before = 0;
  for (std::size_t i = 0; i <= kEdges; ++i) {
    const auto here = static_cast<double>(buckets_[i]);
    if (here > 0 && before + here >= rank) {
      const double low = i == 0 ? 0 : static_cast<double>(edges()[i - 1]);
      const double high =
          i == kEdges ? static_cast<double>(max_)
                      : std::min(static_cast<double>(edges()[i]), static_cast<double>(max_));
      return low + (high - low) * std::clamp((rank - before) / here, 0.0, 1.0);
    }
    before += here;
  }
  return static_cast<double>(max_);
}

std::uint64_t LatencyHistogram::at_most(std::uint64_t nanoseconds) const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kEdges && edges()[i] <= nanoseconds; ++i) sum += buckets_[i];
  return sum;
}

}  // namespace batchfs
