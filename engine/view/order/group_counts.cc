#include "engine/view/order/group_counts.h"

#include <algorithm>

namespace batchfs {

GroupCounts::GroupCounts(std::int64_t count, const ChunkGroups& groups, const SampleIndex* by_place,
                         GroupAt at)
    : count_(count),
      groups_(&groups),
      by_place_(by_place),
      group_samples_(by_place != nullptr || groups.is_uneven() ? 0 : groups.group_samples()),
      at_(std::move(at)) {
  if (group_samples_ != 0) return;
  std::int64_t before = 0;
  for (std::int64_t k = 0; k < count_; ++k) {
    if (k % kStep == 0) counts_.push_back(before);
    before += samples_of(k);
  }
  counts_.push_back(before);
}

std::int64_t GroupCounts::samples_of(std::int64_t k) const {
  const std::int64_t group = at_(k);
  return samples_before(groups_->begin(group + 1)) - samples_before(groups_->begin(group));
}

std::int64_t GroupCounts::before(std::int64_t k) const {
  if (group_samples_ != 0) return k * group_samples_;
  if (k == count_) return counts_.back();
  std::int64_t before = counts_[static_cast<std::size_t>(k / kStep)];
  for (std::int64_t j = k / kStep * kStep; j < k; ++j) before += samples_of(j);
  return before;
}

std::pair<std::int64_t, std::int64_t> GroupCounts::find(std::int64_t i) const {
  if (group_samples_ != 0) return {i / group_samples_, i - i % group_samples_};
  // The last step with at most i samples before it that has one more.
  const auto step = std::upper_bound(counts_.begin(), counts_.end(), i) - counts_.begin() - 1;
  std::int64_t before = counts_[static_cast<std::size_t>(step)];
  for (std::int64_t k = step * kStep;; ++k) {
    const std::int64_t here = samples_of(k);
    if (i < before + here) return {k, before};
    before += here;
  }
}

std::int64_t GroupCounts::place(std::int64_t i) const {
  const auto [k, before] = find(i);
  const std::int64_t first = groups_->begin(at_(k));
  if (by_place_ == nullptr) return first + (i - before);
  return by_place_->window(by_place_->samples_before(first) + (i - before));
}

}  // namespace batchfs
