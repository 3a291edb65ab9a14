#pragma once
// The samples of a view's epochs, in order, as "order" and "epochs" define it.

#include <cstdint>
#include <memory>

#include "engine/view/order/home_order.h"
#include "engine/view/order/order.h"
#include "engine/view/order/skipping_order.h"
#include "engine/view/samples/sample_index.h"

namespace batchfs {

/// Passes over all samples follow each other, each in its own order. An epoch is a stretch of them,
/// by default one pass. Thread-safe.
class EpochOrder {
 public:
  struct Sizes {
    std::int64_t samples;  // of a pass
    std::int64_t epoch_samples;
    std::int64_t batch_size;
  };

  /// `kept`: which windows are samples; null: all are.
  EpochOrder(const Order& order, ChunkGroups groups, Sizes sizes,
             std::shared_ptr<const SampleIndex> kept);

  /// The sample at position i of an epoch, 0 <= i < sizes.epoch_samples.
  std::int64_t sample(std::int64_t i, std::int64_t epoch) const;

 private:
  const Order order_;
  const ChunkGroups groups_;
  const Sizes sizes_;
  const std::shared_ptr<const SampleIndex> kept_;
  std::unique_ptr<const HomeOrder> home_;  // null: without "home"
  /// Null: no block order of groups that differ.
  std::unique_ptr<const SkippingBlockOrder> skipping_;
};

}  // namespace batchfs
