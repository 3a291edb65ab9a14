#pragma once
// The block order with lanes that are the same in every epoch: groups are dealt to lanes once, and
// epochs permute them inside their lanes. A rank that reads the same lanes in each epoch then reads
// the same chunks, which the cache of its machine holds after the first. batchfs-view(5) describes
// it.

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "engine/view/order/group_counts.h"
#include "engine/view/order/order.h"
#include "engine/view/samples/sample_index.h"

namespace batchfs {

/// Immutable but for the counts of groups that it remembers; thread-safe.
class HomeOrder {
 public:
  /// `order` is a block order with "home"; `kept` marks the windows that are samples, in the
  /// numbering of `groups`; null: all are.
  HomeOrder(const Order& order, ChunkGroups groups, std::int64_t batch_size,
            const SampleIndex* kept);
  HomeOrder(const HomeOrder&) = delete;
  HomeOrder& operator=(const HomeOrder&) = delete;

  /// The window at position i of a pass over all samples.
  std::int64_t window(std::int64_t i, std::int64_t pass) const;

 private:
  /// The groups of a lane in the order of a pass: those whose samples are all the lane's, permuted,
  /// followed by the one that it has some of.
  struct Lane {
    std::int64_t groups;
    GroupCounts counts;
  };

  const SampleIndex* by_place() const { return by_place_ ? &*by_place_ : nullptr; }
  void cut_lanes();
  std::shared_ptr<const Lane> lane(std::int64_t lane, std::int64_t pass) const;
  std::shared_ptr<const Lane> make_lane(std::int64_t lane, std::int64_t pass) const;
  std::int64_t place_in_lane(std::int64_t lane, std::int64_t i, std::int64_t pass) const;
  /// The place of one of the samples that no lane has.
  std::int64_t place_of_rest(std::int64_t i) const;

  const Order order_;
  const ChunkGroups groups_;
  const std::int64_t batch_size_;
  const std::optional<SampleIndex> by_place_;  // nothing: every window is a sample
  const bool even_;                            // groups have the same number of samples
  const std::int64_t samples_, group_count_;
  const std::int64_t lane_groups_;  // groups dealt to each lane
  const Permutation deal_;          // lane l has the groups deal_(l * lane_groups_ + j)
  const GroupCounts dealt_;         // of all groups as deal_ orders them
  std::int64_t lane_batches_ = 0;   // whole batches of groups in each lane
  std::int64_t rest_batches_ = 0;   // of other samples, in each lane, after them
  // Where groups differ in size, per lane: groups that it has whole, and samples that the ends of
  // lanes before it leave.
  std::vector<std::int64_t> whole_, ends_before_;

  mutable std::mutex mutex_;  // guards the member below; no other lock is taken with it held
  /// The latest epoch last.
  mutable std::vector<std::pair<std::int64_t, std::vector<std::shared_ptr<const Lane>>>> passes_;
};

}  // namespace batchfs
