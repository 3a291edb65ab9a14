#include "engine/view/samples/label_offsets.h"

#include <utility>

namespace batchfs {

LabelOffsets::LabelOffsets(std::shared_ptr<const TimeSteps> times, std::vector<Duration> durations)
    : times_(std::move(times)), durations_(std::move(durations)), steps_(durations_.size()) {
  const std::int64_t last = times_->size() - 1;
  if (last < 0) return;
  for (std::size_t o = 0; o < durations_.size(); ++o)
    for (const std::int64_t start : {last / 2, std::int64_t{0}, last})
      if (const std::int64_t found = times_->find(start, durations_[o]); found >= 0) {
        steps_[o] = found - start;
        break;
      }
}

}  // namespace batchfs
