#include "engine/scan/moments.h"

#include <algorithm>
#include <cmath>

namespace batchfs {

double Moments::std() const {
  return count > 0 ? std::sqrt(m2 / static_cast<double>(count))
                   : std::numeric_limits<double>::quiet_NaN();
}

void CompensatedSum::add(double value) {
  const double sum = sum_ + value;
  rest_ += std::fabs(sum_) >= std::fabs(value) ? (sum_ - sum) + value : (value - sum) + sum_;
  sum_ = sum;
}

void CompensatedSum::add(const CompensatedSum& other) {
  add(other.sum_);
  if (std::isfinite(other.sum_)) add(other.rest_);
}

double CompensatedSum::value() const { return std::isfinite(sum_) ? sum_ + rest_ : sum_; }

void TwoPassMoments::add(std::span<double> block) {
  // Lanes that the compiler turns into vector registers; the last ones are filled up with NaN.
  const std::size_t size = (block.size() + kLanes - 1) / kLanes * kLanes;
  double* values = block.data();
  for (std::size_t i = block.size(); i < size; ++i)
    values[i] = std::numeric_limits<double>::quiet_NaN();
  double sum[kLanes] = {}, other[kLanes] = {};
  if (second_) {
    const double mean = moments_.mean;
    for (std::size_t i = 0; i < size; i += kLanes)
      for (std::size_t j = 0; j < kLanes; ++j) {
        const double value = values[i + j];
        const double difference = value == value ? value - mean : 0;
        sum[j] += difference;
        other[j] += difference * difference;
      }
    for (std::size_t j = 0; j < kLanes; ++j) {
      sum_.add(sum[j]);
      squares_.add(other[j]);
    }
    return;
  }
  double low[kLanes], high[kLanes];
  std::fill_n(low, kLanes, moments_.min);
  std::fill_n(high, kLanes, moments_.max);
  for (std::size_t i = 0; i < size; i += kLanes)
    for (std::size_t j = 0; j < kLanes; ++j) {
      const double value = values[i + j];
      sum[j] += value == value ? value : 0;
      other[j] += value == value ? 1 : 0;
      low[j] = value < low[j] ? value : low[j];
      high[j] = value > high[j] ? value : high[j];
    }
  std::int64_t count = 0;
  for (std::size_t j = 0; j < kLanes; ++j) {
    sum_.add(sum[j]);
    count += static_cast<std::int64_t>(other[j]);
    moments_.min = std::min(moments_.min, low[j]);
    moments_.max = std::max(moments_.max, high[j]);
  }
  moments_.count += count;
  moments_.nan += static_cast<std::int64_t>(block.size()) - count;
}

void TwoPassMoments::next_pass() {
  second_ = true;
  if (moments_.count > 0) moments_.mean = sum_.value() / static_cast<double>(moments_.count);
  sum_ = {};
}

Moments TwoPassMoments::moments() const {
  Moments result = moments_;
  if (result.count == 0) return result;
  // The remainder of the mean's rounding.
  const auto count = static_cast<double>(result.count);
  const double rest = sum_.value();
  result.m2 = squares_.value() - rest * rest / count;
  if (std::isnan(result.m2)) return result;  // there are infinite numbers
  result.mean += rest / count;
  result.m2 = std::max(0.0, result.m2);
  return result;
}

MergedMoments TwoPassMoments::merged() const {
  const Moments whole = moments();
  if (whole.count == 0 || !std::isfinite(whole.m2)) {
    MergedMoments result;
    result.add(whole);
    return result;
  }
  const auto count = static_cast<double>(whole.count);
  const double sum = moments_.mean * count;
  return {whole, {sum, std::fma(moments_.mean, count, -sum) + sum_.value()}, {whole.m2, 0}};
}

void MergedMoments::add(const Moments& part) {
  total_.nan += part.nan;
  if (part.count == 0) return;
  const auto mine = static_cast<double>(total_.count), theirs = static_cast<double>(part.count);
  if (total_.count > 0) {
    const double difference = part.mean - sum_.value() / mine;
    m2_.add(difference * difference * (mine * theirs / (mine + theirs)));
  }
  m2_.add(part.m2);
  sum_.add(part.mean * theirs);
  total_.count += part.count;
  total_.min = std::min(total_.min, part.min);
  total_.max = std::max(total_.max, part.max);
}

void MergedMoments::add(const MergedMoments& other) {
  total_.nan += other.total_.nan;
  if (other.total_.count == 0) return;
  if (total_.count == 0) {
    const std::int64_t nan = total_.nan;
    *this = other;
    total_.nan = nan;
    return;
  }
  const auto mine = static_cast<double>(total_.count),
             theirs = static_cast<double>(other.total_.count);
  const CompensatedSum a = mean(), b = other.mean();
  const double difference = (b.sum() - a.sum()) + (b.rest() - a.rest());
  m2_.add(difference * difference * (mine * theirs / (mine + theirs)));
  m2_.add(other.m2_);
  sum_.add(other.sum_);
  total_.count += other.total_.count;
  total_.min = std::min(total_.min, other.total_.min);
  total_.max = std::max(total_.max, other.total_.max);
}

CompensatedSum MergedMoments::mean() const {
  const auto count = static_cast<double>(total_.count);
  const double mean = sum_.sum() / count;
  return {mean, (std::fma(-mean, count, sum_.sum()) + sum_.rest()) / count};
}

Moments MergedMoments::moments() const {
  Moments result = total_;
  if (result.count > 0) result.mean = sum_.value() / static_cast<double>(result.count);
  result.m2 = m2_.value();
  return result;
}

}  // namespace batchfs
