#pragma once
// The order of a view's samples, as "order", "epochs" and "weights" define it.

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/view/axes.h"
#include "engine/view/list/weighted_order.h"
#include "engine/view/order/chunk_groups.h"
#include "engine/view/order/epoch_order.h"
#include "engine/view/order/source_chunks.h"
#include "engine/view/rows/sample_set.h"
#include "engine/view/spec.h"
#include "engine/view/tensors/tensor_set.h"

namespace batchfs {

/// Immutable but for the epochs that it remembers; thread-safe.
class SampleOrder {
 public:
  /// The values of a view that an order depends on.
  struct Inputs {
    std::shared_ptr<const Dataset> dataset;
    std::shared_ptr<const ViewAxes> axes;
    std::shared_ptr<const TensorSet> tensors;
    std::shared_ptr<const SampleSet> samples;
  };

  /// Completes spec.order, and the digest of spec.weights. `draws`: of the same samples, where they
  /// are known. Throws with the JSON path for groups and weights that cannot be.
  SampleOrder(const Inputs& inputs, ViewSpec& spec, std::shared_ptr<const Draws> draws = nullptr);

  /// The sample at position i of an epoch, 0 <= i < its samples.
  std::int64_t sample(std::int64_t i, std::int64_t epoch) const {
    if (weighted_ != nullptr) return weighted_->sample(i, epoch);
    const std::int64_t found = order_->sample(i, epoch);
    return places_.empty() ? found : places_[static_cast<std::size_t>(found)];
  }
  /// Samples that the order mixes with each other: all, those of a run of groups, or one.
  std::int64_t mixed_samples(const Order& order) const;

  /// The probabilities of samples; null without weights.
  const std::shared_ptr<const Draws>& draws() const { return draws_; }
  const ChunkGroups& groups() const { return groups_; }
  /// Null: groups are of the first source's chunks.
  const SourceChunks* by() const { return by_.get(); }

 private:
  void define_groups(ViewSpec& spec);
  void define_draws(ViewSpec& spec);
  WindowedVariables windowed() const {
    return {in_.tensors->variables, in_.axes->selected, in_.axes->windows, in_.samples->grid,
            by_.get()};
  }

  const Inputs in_;
  std::shared_ptr<const SourceChunks> by_;
  ChunkGroups groups_;
  std::vector<std::uint32_t> places_;  // of a list in the block order: rows by chunk
  std::shared_ptr<const Draws> draws_;
  std::unique_ptr<const EpochOrder> order_;        // null with weights
  std::unique_ptr<const WeightedOrder> weighted_;  // null without
};

}  // namespace batchfs
