#pragma once
// The times of a dimension, as formulas of time need them.

#include <cstdint>
#include <string>
#include <vector>

#include "engine/dataset/calendar.h"
#include "engine/dataset/dataset.h"

namespace batchfs {

struct Instant {
  double seconds = 0;  // since 1970-01-01T00:00:00; NaN for NaT
  double of_day = 0;   // the share of the day that has passed; NaN for NaT
  int day = 1;         // of the year: 1 to 366
};
Instant instant_of(const Moment& moment);

/// Immutable. 16 bytes a label.
class TimeLabels {
 public:
  /// The labels of the dimension's coordinate. Throws invalid_argument with `path` unless they are
  /// datetime64.
  TimeLabels(const Dataset& dataset, const std::string& dim, const std::string& path);

  /// Of a position of the array's dimension, so many nanoseconds later.
  Instant at(std::int64_t position, std::int64_t later = 0) const;

 private:
  std::vector<Moment> moments_;
};

/// The dimension whose labels are times: `named`, else the only one of `preferred`, else the only
/// one of the dataset. Throws invalid_argument with `path`.
std::string time_dimension(const Dataset& dataset, const std::vector<std::string>& preferred,
                           const std::string& named, const std::string& path);

}  // namespace batchfs
