#include "engine/scan/quantiles.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "engine/base/error.h"

namespace batchfs {

namespace {

constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
constexpr std::int64_t kMaxCount = std::int64_t{1} << 62;
/// Keys that are counted in an array rather than sorted.
constexpr std::uint64_t kMaxSpan = 1 << 20;

using Bucket = QuantileSketch::Bucket;

/// Ascending with the numbers; -0 is 0.
std::uint64_t key_of(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value + 0.0);
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}

double number_of(std::uint64_t key) {
  return std::bit_cast<double>((key & kSign) != 0 ? key ^ kSign : ~key);
}

/// Joins neighbours of the same key, of sorted buckets.
void join_equal(std::vector<Bucket>& buckets) {
  std::size_t kept = 0;
  for (const Bucket& bucket : buckets) {
    if (kept > 0 && buckets[kept - 1].key == bucket.key)
      buckets[kept - 1].count += bucket.count;
    else
      buckets[kept++] = bucket;
  }
  buckets.resize(kept);
}

bool is_before(const Bucket& a, const Bucket& b) { return a.key < b.key; }

}  // namespace

QuantileSketch::QuantileSketch(std::size_t max_buckets, int shift, std::vector<Bucket> buckets)
    : max_buckets_(max_buckets), shift_(shift), buckets_(std::move(buckets)) {
  const auto corrupt = [] { return Error(ErrorCode::corrupt, "buckets that cannot be"); };
  if (shift < 0 || shift > 63 || buckets_.size() > max_buckets) throw corrupt();
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    const Bucket& bucket = buckets_[i];
    if ((i > 0 && bucket.key <= buckets_[i - 1].key) || bucket.count <= 0 ||
        (bucket.key >> (63 - shift)) > 1 || __builtin_add_overflow(total_, bucket.count, &total_) ||
        total_ > kMaxCount)
      throw corrupt();
  }
}

std::vector<Bucket> QuantileSketch::count(std::span<const double> values, int shift) {
  std::vector<std::uint64_t> keys;
  keys.reserve(values.size());
  std::uint64_t low = UINT64_MAX, high = 0;
  for (const double value : values) {
    if (std::isnan(value)) continue;
    keys.push_back(key_of(value) >> shift);
    low = std::min(low, keys.back());
    high = std::max(high, keys.back());
  }
  std::vector<Bucket> buckets;
  if (keys.empty()) return buckets;
  if (high - low < std::min<std::uint64_t>(kMaxSpan, 16 * keys.size())) {
    std::vector<std::int64_t> counts(high - low + 1);
    for (const std::uint64_t key : keys) ++counts[key - low];
    for (std::size_t i = 0; i < counts.size(); ++i)
      if (counts[i] > 0) buckets.push_back({low + i, counts[i]});
    return buckets;
  }
  std::sort(keys.begin(), keys.end());
  for (const std::uint64_t key : keys) {
    if (!buckets.empty() && buckets.back().key == key)
      ++buckets.back().count;
    else
      buckets.push_back({key, 1});
  }
  return buckets;
}

void QuantileSketch::add(std::span<const Bucket> buckets, int shift) {
  for (const Bucket& bucket : buckets) {
    if (__builtin_add_overflow(total_, bucket.count, &total_) || total_ > kMaxCount)
      throw Error(ErrorCode::corrupt, "more numbers than can be counted");
    pending_.push_back({bucket.key >> (shift_ - shift), bucket.count});
    if (pending_.size() > std::max<std::size_t>(1024, 2 * buckets_.size())) {
      settle();
      // Later ones of this call are still of `shift`.
    }
  }
}

void QuantileSketch::add(const QuantileSketch& other) {
  other.settle();
  if (other.shift_ > shift_) {
    settle();
    widen(other.shift_);
  }
  add(other.buckets_, other.shift_);
}

/// Drops low bits of the keys.
void QuantileSketch::widen(int shift) const {
  for (Bucket& bucket : buckets_) bucket.key >>= shift - shift_;
  join_equal(buckets_);
  shift_ = shift;
}

void QuantileSketch::settle() const {
  if (pending_.empty()) return;
  std::sort(pending_.begin(), pending_.end(), is_before);
  std::vector<Bucket> all(buckets_.size() + pending_.size());
  std::merge(buckets_.begin(), buckets_.end(), pending_.begin(), pending_.end(), all.begin(),
             is_before);
  join_equal(all);
  buckets_ = std::move(all);
  pending_.clear();
  while (buckets_.size() > max_buckets_) widen(shift_ + 1);
}

const std::vector<Bucket>& QuantileSketch::buckets() const {
  settle();
  return buckets_;
}

/// The number at `place` in sorted order, as if the numbers of a bucket were spread over it.
/// Precondition: all numbers are entered, and place < total_.
QuantileSketch::Value QuantileSketch::number(std::int64_t place) const {
  std::size_t i = 0;
  while (place >= buckets_[i].count) place -= buckets_[i++].count;
  const std::uint64_t first = buckets_[i].key << shift_;
  const double low = number_of(first);
  if (shift_ == 0) return {low, 0};
  const double high = number_of(first + ((std::uint64_t{1} << shift_) - 1));
  const double share = (static_cast<double>(place) + 0.5) / static_cast<double>(buckets_[i].count);
  const double width = high - low;
  // Where infinity lies in the bucket it has no middle.
  if (!std::isfinite(width)) return {std::isfinite(low) ? low : high, width};
  return {low + width * share, width};
}

QuantileSketch::Value QuantileSketch::quantile(double q) const {
  settle();
  if (total_ == 0) {
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    return {kNan, kNan};
  }
  const double place = q * static_cast<double>(total_ - 1);
  const auto before = std::min(static_cast<std::int64_t>(place), total_ - 1);
  const Value low = number(before), high = number(std::min(before + 1, total_ - 1));
  const double share = place - static_cast<double>(before);
  const double difference = high.value - low.value;
  // Interpolates like numpy, so that exact numbers have its bits.
  const double value =
      share >= 0.5 ? high.value - difference * (1 - share) : low.value + difference * share;
  return {value, std::max(low.error, high.error)};
}

}  // namespace batchfs
