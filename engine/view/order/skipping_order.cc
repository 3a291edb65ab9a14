#include "engine/view/order/skipping_order.h"

#include <algorithm>

namespace batchfs {

namespace {

/// The reader of one epoch and the prefetcher, which may be in the next one.
constexpr std::size_t kEpochsKept = 4;

}  // namespace

SampleIndex samples_by_place(const SampleIndex& kept, const ChunkGroups& groups) {
  const std::int64_t windows = kept.windows();
  std::vector<std::uint64_t> words((static_cast<std::size_t>(windows) + 63) / 64);
  // Along the last axis places and windows advance together: one division per run of them.
  const std::int64_t run = groups.is_uneven() ? 1 : groups.axes.back().group;
  const std::int64_t in_groups = groups.in_groups();
  for (std::int64_t place = 0; place < windows;) {
    const std::int64_t length = place < in_groups ? run : 1;
    const std::int64_t first = groups.sample(place);
    for (std::int64_t i = 0; i < length; ++i, ++place)
      if (kept.contains(first + i))
        words[static_cast<std::size_t>(place / 64)] |= std::uint64_t{1} << (place % 64);
  }
  return SampleIndex(std::move(words), windows);
}

SkippingBlockOrder::SkippingBlockOrder(const Order& order, ChunkGroups groups,
                                       const SampleIndex* kept)
    : order_(order),
      groups_(std::move(groups)),
      by_place_(kept ? std::optional(samples_by_place(*kept, groups_)) : std::nullopt),
      group_count_(groups_.count()),
      in_groups_(samples_before(groups_.in_groups())) {}

std::int64_t SkippingBlockOrder::samples_of(std::int64_t group) const {
  return samples_before(groups_.begin(group + 1)) - samples_before(groups_.begin(group));
}

std::shared_ptr<const SkippingBlockOrder::Counts> SkippingBlockOrder::counts(
    std::int64_t epoch, const Permutation& groups) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [known, counts] : epochs_)
    if (known == epoch) return counts;
  Counts counts;
  std::int64_t before = 0;
  for (std::int64_t k = 0; k < group_count_; ++k) {
    if (k % kStep == 0) counts.push_back(before);
    before += samples_of(groups(k));
  }
  counts.push_back(before);
  if (epochs_.size() == kEpochsKept) epochs_.erase(epochs_.begin());
  epochs_.emplace_back(epoch, std::make_shared<const Counts>(std::move(counts)));
  return epochs_.back().second;
}

std::int64_t SkippingBlockOrder::before(std::int64_t k, const Counts& counts,
                                        const Permutation& groups) const {
  if (k >= group_count_) return in_groups_;
  std::int64_t before = counts[static_cast<std::size_t>(k / kStep)];
  for (std::int64_t j = k / kStep * kStep; j < k; ++j) before += samples_of(groups(j));
  return before;
}

std::pair<std::int64_t, std::int64_t> SkippingBlockOrder::group_of(
    std::int64_t i, const Counts& counts, const Permutation& groups) const {
  // The last step with at most i samples before it that has one more.
  const auto step = std::upper_bound(counts.begin(), counts.end(), i) - counts.begin() - 1;
  std::int64_t before = counts[static_cast<std::size_t>(step)];
  for (std::int64_t k = step * kStep;; ++k) {
    const std::int64_t here = samples_of(groups(k));
    if (i < before + here) return {k, before};
    before += here;
  }
}

std::int64_t SkippingBlockOrder::window(std::int64_t i, std::int64_t epoch) const {
  const auto e = static_cast<std::uint64_t>(epoch);
  if (i >= in_groups_) {
    const std::int64_t rest = samples_before(groups_.samples()) - in_groups_;
    return groups_.sample(
        place_of(in_groups_ + Permutation(rest, order_.seed, e, 1)(i - in_groups_)));
  }
  const Permutation groups(group_count_, order_.seed, e);
  const std::shared_ptr<const Counts> known = counts(epoch, groups);
  const std::int64_t run_groups = std::min(order_.buffer, group_count_);
  const std::int64_t run = group_of(i, *known, groups).first / run_groups;
  const std::int64_t begin = before(run * run_groups, *known, groups);
  const std::int64_t end = before((run + 1) * run_groups, *known, groups);
  const std::int64_t mixed = begin + Permutation(end - begin, order_.seed, e,
                                                 2 + static_cast<std::uint64_t>(run))(i - begin);
  const auto [group, first] = group_of(mixed, *known, groups);
  return groups_.sample(place_of(samples_before(groups_.begin(groups(group))) + (mixed - first)));
}

}  // namespace batchfs
