#pragma once
// The block order of a view that skips windows or whose groups have several sizes: groups of
// windows that share chunks stay together, whatever is left of them. batchfs-view(5) describes it.

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "engine/view/order/order.h"
#include "engine/view/samples/sample_index.h"

namespace batchfs {

/// Which windows are samples, by their places in `groups` rather than by their numbers.
SampleIndex samples_by_place(const SampleIndex& kept, const ChunkGroups& groups);

/// Immutable except for its memory of epochs; thread-safe.
class SkippingBlockOrder {
 public:
  /// `order` is a block order; `kept` marks the windows that are samples, in the numbering of
  /// `groups`: null if all are.
  SkippingBlockOrder(const Order& order, ChunkGroups groups, const SampleIndex* kept);

  /// The window at position i of an epoch, 0 <= i < kept samples.
  std::int64_t window(std::int64_t i, std::int64_t epoch) const;

 private:
  /// Samples before every kStep-th group in the order of the epoch's groups, and before the end.
  using Counts = std::vector<std::int64_t>;
  static constexpr std::int64_t kStep = 16;

  std::shared_ptr<const Counts> counts(std::int64_t epoch, const Permutation& groups) const;
  /// Samples before the k-th group of the epoch.
  std::int64_t before(std::int64_t k, const Counts& counts, const Permutation& groups) const;
  /// Which group of the epoch holds sample i, and how many samples come before that group.
  std::pair<std::int64_t, std::int64_t> group_of(std::int64_t i, const Counts& counts,
                                                 const Permutation& groups) const;
  /// Samples before a place, and the place of a sample among those sorted by place.
  std::int64_t samples_before(std::int64_t place) const {
    return by_place_ ? by_place_->samples_before(place) : place;
  }
  std::int64_t place_of(std::int64_t sample) const {
    return by_place_ ? by_place_->window(sample) : sample;
  }
  /// Samples in a group, by its number.
  std::int64_t samples_of(std::int64_t group) const;

  const Order order_;
  const ChunkGroups groups_;
  const std::optional<SampleIndex> by_place_;  // which windows are samples, by their places in
                                               // groups_
  const std::int64_t group_count_;
  const std::int64_t in_groups_;  // samples

  mutable std::mutex mutex_;  // guards the fields below
  /// The latest epoch last.
  mutable std::vector<std::pair<std::int64_t, std::shared_ptr<const Counts>>> epochs_;
};

}  // namespace batchfs
