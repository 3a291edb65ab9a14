#include "engine/view/group_counts.h"

#include <algorithm>

namespace batchfs {

GroupCounts::GroupCounts(std::int64_t groups, std::int64_t group_windows,
                         const SampleIndex* by_place, GroupAt at)
    : groups_(groups), group_windows_(group_windows), by_place_(by_place), at_(std::move(at)) {
  if (by_place_ == nullptr) return;
  std::int64_t before = 0;
  for (std::int64_t k = 0; k < groups_; ++k) {
    if (k % kStep == 0) counts_.push_back(before);
    before += samples_of(k);
  }
  counts_.push_back(before);
}

std::int64_t GroupCounts::samples_of(std::int64_t k) const {
  const std::int64_t first = at_(k) * group_windows_;
  return by_place_->samples_before(first + group_windows_) - by_place_->samples_before(first);
}

std::int64_t GroupCounts::before(std::int64_t k) const {
  if (by_place_ == nullptr) return k * group_windows_;
  if (k == groups_) return counts_.back();
  std::int64_t before = counts_[static_cast<std::size_t>(k / kStep)];
  for (std::int64_t j = k / kStep * kStep; j < k; ++j) before += samples_of(j);
  return before;
}

std::pair<std::int64_t, std::int64_t> GroupCounts::find(std::int64_t i) const {
  if (by_place_ == nullptr) return {i / group_windows_, i - i % group_windows_};
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
  const std::int64_t first = at_(k) * group_windows_;
  if (by_place_ == nullptr) return first + (i - before);
  return by_place_->window(by_place_->samples_before(first) + (i - before));
}

}  // namespace batchfs
