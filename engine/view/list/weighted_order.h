#pragma once
// The order of samples that are drawn by weights. batchfs-view(5) describes it.

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/view/list/list_groups.h"
#include "engine/view/list/weights.h"
#include "engine/view/order/epoch_order.h"
#include "engine/view/order/order.h"

namespace batchfs {

/// Immutable except for its memory of epochs; thread-safe.
class WeightedOrder {
 public:
  /// Groups a sequence of samples, whose i-th the argument returns, by their chunks.
  using Group = std::function<SequenceGroups(std::int64_t samples,
                                             const std::function<std::int64_t(std::int64_t)>&)>;

  /// `group` is needed for the block order; with "home" it numbers groups as GroupNumbers::deal()
  /// does. An epoch has sizes.epoch_samples draws. Throws not_supported for 2^28 and more of them
  /// in the block order.
  WeightedOrder(const Order& order, EpochOrder::Sizes sizes, std::shared_ptr<const Draws> draws,
                Group group);

  /// The sample at position i of an epoch.
  std::int64_t sample(std::int64_t i, std::int64_t epoch) const;

 private:
  class BlockOrder;
  std::shared_ptr<const BlockOrder> block_order(std::int64_t epoch, double u) const;

  const Order order_;
  const EpochOrder::Sizes sizes_;
  const std::shared_ptr<const Draws> draws_;
  const Group group_;

  mutable std::mutex mutex_;  // guards the member below; no other lock is taken with it held
  /// The latest epoch last.
  mutable std::vector<std::pair<std::int64_t, std::shared_ptr<const BlockOrder>>> epochs_;
};

}  // namespace batchfs
