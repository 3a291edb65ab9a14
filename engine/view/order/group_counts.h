#pragma once
// How many samples come before each group of a sequence of groups, where windows may be skipped
// and groups may differ in size.

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "engine/view/order/order.h"
#include "engine/view/samples/sample_index.h"

namespace batchfs {

/// Immutable, thread-safe. Takes 8 bytes for 16 groups, unless all have the same number of samples.
class GroupCounts {
 public:
  /// The number of the k-th group of the sequence.
  using GroupAt = std::function<std::int64_t(std::int64_t)>;

  /// A sequence of `count` of the groups. `by_place`: the windows that are samples, by their places
  /// (ChunkGroups::sample); null: all are. Both, and everything that `at` refers to, must outlive
  /// this object.
  GroupCounts(std::int64_t count, const ChunkGroups& groups, const SampleIndex* by_place,
              GroupAt at);

  /// Samples before the k-th group, 0 <= k <= groups.
  std::int64_t before(std::int64_t k) const;
  /// Which group holds sample i of the sequence, and how many samples come before that group.
  std::pair<std::int64_t, std::int64_t> find(std::int64_t i) const;
  /// The place of sample i of the sequence.
  std::int64_t place(std::int64_t i) const;

 private:
  static constexpr std::int64_t kStep = 16;

  /// Samples before a place.
  std::int64_t samples_before(std::int64_t place) const {
    return by_place_ == nullptr ? place : by_place_->samples_before(place);
  }
  std::int64_t samples_of(std::int64_t k) const;

  std::int64_t count_;
  const ChunkGroups* groups_;
  const SampleIndex* by_place_;
  std::int64_t group_samples_;  // of each group; 0: they differ
  GroupAt at_;
  std::vector<std::int64_t> counts_;  // before every kStep-th group, and before the end
};

}  // namespace batchfs
