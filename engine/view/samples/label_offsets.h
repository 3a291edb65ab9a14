#pragma once
// Offsets of windows that are durations: the window of a sample begins at the label that lies so
// much after the label of its start, wherever that is stored.

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/view/samples/time_steps.h"

namespace batchfs {

/// Immutable, thread-safe.
class LabelOffsets {
 public:
  /// Precondition: no label of `times` is unordered.
  LabelOffsets(std::shared_ptr<const TimeSteps> times, std::vector<Duration> durations);

  const std::vector<Duration>& durations() const { return durations_; }
  std::size_t size() const { return durations_.size(); }
  const TimeSteps& times() const { return *times_; }

  /// The position of the label that is the o-th duration after that of `start`; -1 without one.
  /// Over ascending starts, positions ascend.
  std::int64_t first(std::size_t o, std::int64_t start) const {
    return times_->find(start, durations_[o], start + steps_[o]);
  }

 private:
  std::shared_ptr<const TimeSteps> times_;
  std::vector<Duration> durations_;
  std::vector<std::int64_t> steps_;  // the distance of most labels in positions: tried first
};

}  // namespace batchfs
