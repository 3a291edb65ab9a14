#pragma once
// Labels on a circle: matches longitudes from -180 to 180 with those from 0 to 360.

#include <cstdint>
#include <vector>

#include "engine/dataset/joined/axis_join.h"

namespace batchfs {

/// Labels of a source, sorted by their angle from the widest gap. Immutable.
class JoinCircle {
 public:
  /// Labels whose angles differ by at most `rounding` are equal. Precondition: `labels` are
  /// numbers.
  JoinCircle(const JoinLabels& labels, double period, double rounding);

  /// The position of the label that stands for `wanted`, by the pick and the tolerance of the rule;
  /// of several at the same place the first; Positions::kNone. Upwards from the last label comes
  /// the first one: of two neighbours as far away the one further upwards is taken.
  std::int64_t find(LabelNumber wanted, const JoinRule& rule) const;

  /// Angles from the end of the widest gap, with the position of each label. `begin` is the first
  /// label's own place, in [0, period).
  struct Arc {
    long double begin = 0;
    std::vector<long double> places;  // ascending, from `begin` on
    std::vector<std::int64_t> positions;
  };
  Arc arc() const;

 private:
  struct Stop {
    double place;  // in [0, period)
    std::int64_t position;
  };
  double up(double from, double to) const;

  const double period_, rounding_;
  std::vector<Stop> stops_;  // ascending
};

/// Labels one after the other, each the shorter way round from the one before.
std::vector<long double> unwound(const std::vector<long double>& labels, double period);

}  // namespace batchfs
