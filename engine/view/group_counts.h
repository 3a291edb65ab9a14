#pragma once
// How many samples come before each group of a sequence of groups, where windows may be skipped.

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "engine/view/sample_index.h"

namespace batchfs {

/// Immutable, thread-safe. Takes 8 bytes for 16 groups where windows are skipped, else nothing.
class GroupCounts {
 public:
  /// The number of the k-th group of the sequence.
  using GroupAt = std::function<std::int64_t(std::int64_t)>;

  /// `by_place`: which windows are samples, by their places (ChunkGroups::sample); null: all are.
  /// It must outlive this object, and so must what `at` refers to.
  GroupCounts(std::int64_t groups, std::int64_t group_windows, const SampleIndex* by_place,
              GroupAt at);

  /// Samples before the k-th group, 0 <= k <= groups.
  std::int64_t before(std::int64_t k) const;
  /// Which group holds sample i of the sequence, and how many samples come before that group.
  std::pair<std::int64_t, std::int64_t> find(std::int64_t i) const;
  /// The place of sample i of the sequence.
  std::int64_t place(std::int64_t i) const;

 private:
  static constexpr std::int64_t kStep = 16;

  std::int64_t samples_of(std::int64_t k) const;

  std::int64_t groups_, group_windows_;
  const SampleIndex* by_place_;
  GroupAt at_;
  std::vector<std::int64_t> counts_;  // before every kStep-th group, and before the end
};

}  // namespace batchfs
