#include "engine/view/mix/mix_schedule.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/view/order/order.h"

namespace batchfs {

namespace {

constexpr std::uint64_t kMixStream = 5;

std::vector<std::int64_t> sums_of(const std::vector<std::int64_t>& numbers) {
  std::vector<std::int64_t> sums;
  std::partial_sum(numbers.begin(), numbers.end(), std::back_inserter(sums));
  return sums;
}

}  // namespace

MixSchedule::MixSchedule(Counts counts, std::int64_t block, std::uint64_t seed)
    : counts_(std::move(counts)),
      block_(block),
      seed_(seed),
      rate_sums_(sums_of(counts_.rates)),
      epoch_sums_(sums_of(counts_.per_epoch)),
      positions_(epoch_sums_.back()) {}

std::vector<std::int64_t> MixSchedule::sums_before(std::int64_t position) const {
  if (position == positions_) return epoch_sums_;
  std::vector<std::int64_t> sums;
  for (const std::int64_t rates : rate_sums_) {
    // position * rates / period, to the nearest.
    const auto period = static_cast<unsigned __int128>(counts_.period);
    const auto twice =
        2 * static_cast<unsigned __int128>(position) * static_cast<unsigned __int128>(rates);
    sums.push_back(static_cast<std::int64_t>((twice + period) / (2 * period)));
  }
  return sums;
}

std::vector<MixSchedule::Place> MixSchedule::places(std::int64_t first, std::int64_t count,
                                                    std::int64_t epoch) const {
  std::vector<Place> result;
  const auto blocks = static_cast<std::uint64_t>((positions_ - 1) / block_ + 1);
  while (count > 0) {
    const std::int64_t at = first % positions_, number = at / block_, begin = number * block_;
    const std::int64_t end = std::min(begin + block_, positions_);
    const std::vector<std::int64_t> before = sums_before(begin);
    std::vector<std::int64_t> quotas = sums_before(end);  // of the components up to each
    for (std::size_t c = 0; c < quotas.size(); ++c) quotas[c] -= before[c];
    const Permutation permutation(
        end - begin, seed_,
        static_cast<std::uint64_t>(epoch) * blocks + static_cast<std::uint64_t>(number),
        kMixStream);
    const std::int64_t here = std::min(count, end - at);
    for (std::int64_t i = at; i < at + here; ++i) {
      const std::int64_t drawn = permutation(i - begin);
      const auto c = static_cast<std::size_t>(
          std::upper_bound(quotas.begin(), quotas.end(), drawn) - quotas.begin());
      const std::int64_t own_before = before[c] - (c > 0 ? before[c - 1] : 0);
      const std::int64_t in_block = drawn - (c > 0 ? quotas[c - 1] : 0);
      result.push_back({c, static_cast<unsigned __int128>(epoch) *
                                   static_cast<unsigned __int128>(counts_.per_epoch[c]) +
                               static_cast<unsigned __int128>(own_before + in_block)});
    }
    first = at + here;
    count -= here;
  }
  return result;
}

std::vector<std::int64_t> largest_remainder(const std::vector<double>& shares, std::int64_t total) {
  std::vector<std::int64_t> parts;
  std::vector<double> remainders;
  std::vector<std::size_t> order;
  std::int64_t left = total;
  for (std::size_t c = 0; c < shares.size(); ++c) {
    const double exact = shares[c] * static_cast<double>(total);
    parts.push_back(static_cast<std::int64_t>(std::floor(exact)));
    remainders.push_back(exact - std::floor(exact));
    left -= parts.back();
    order.push_back(c);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return remainders[a] > remainders[b]; });
  for (std::size_t i = 0; left > 0; ++i, --left) ++parts[order[i % order.size()]];
  // Beyond 2^53 rounding may exceed the total.
  for (std::size_t i = 0; left < 0; ++i)
    if (const std::int64_t less = std::min(-left, parts[order[i % order.size()]]); less > 0)
      parts[order[i % order.size()]] -= less, left += less;
  return parts;
}

}  // namespace batchfs
