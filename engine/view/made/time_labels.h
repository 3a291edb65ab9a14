#pragma once
// The times of values, as formulas of time need them.

#include <cstdint>
#include <string>
#include <vector>

#include "engine/dataset/calendar.h"
#include "engine/dataset/dataset.h"
#include "engine/view/made/value_times.h"

namespace batchfs {

struct Instant {
  double seconds = 0;  // since 1970-01-01T00:00:00; NaN for NaT
  double of_day = 0;   // the share of the day that has passed; NaN for NaT
  int day = 1;         // of the year: 1 to 366
};
Instant instant_of(const Moment& moment);

/// Immutable. 16 bytes a label, 8 a lead time.
class TimeLabels {
 public:
  /// Reads coordinates, blocking. Throws invalid_argument with `path` unless the times are
  /// datetime64, no_memory for more times of a variable than a quarter of the memory limit holds.
  TimeLabels(const Dataset& dataset, const ValueTimes& times, const std::string& path);

  /// How many dimensions the times have: 1, or 2 in forecasts.
  std::size_t rank() const { return shape_.size(); }
  /// The number of the time at a position, whose first rank() dimensions are those of the times.
  std::int64_t number(const Dims& position) const;
  /// This many nanoseconds later than the time of this number.
  Instant at(std::int64_t number, std::int64_t later = 0) const;

 private:
  Dims shape_;
  std::vector<Moment> moments_;
  std::vector<std::int64_t> leads_;  // nanoseconds, beside starts in `moments_`; empty: none
};

}  // namespace batchfs
