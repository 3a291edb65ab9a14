#pragma once
// The batches of a view of windows: a row is a sample, and a sample is a window.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/view/axes.h"
#include "engine/view/row_range.h"
#include "engine/view/rows/sample_order.h"
#include "engine/view/rows/sample_set.h"
#include "engine/view/spec.h"
#include "engine/view/tensors/tensor_set.h"

namespace batchfs {

/// Immutable, thread-safe.
class WindowRows {
 public:
  /// Throws invalid_argument where "remainder" leaves no batch.
  WindowRows(std::shared_ptr<const ViewSpec> spec, const SampleOrder::Inputs& values,
             std::shared_ptr<const SampleOrder> order);

  const SampleSet& set() const { return *values_.samples; }
  const SampleOrder& sample_order() const { return *order_; }
  /// The values that another order of the same samples is made of.
  const SampleOrder::Inputs& values() const { return values_; }

  std::int64_t samples() const { return set().samples; }
  std::int64_t epoch_samples() const { return spec_->epoch_samples.value_or(samples()); }
  std::int64_t batch_size() const { return spec_->batch_size; }
  std::int64_t batches() const;
  std::int64_t row_count(std::int64_t batch) const;
  std::int64_t sample_count(std::int64_t batch) const { return row_count(batch); }
  /// Are the samples not known yet?
  bool needs_scan() const { return spec_->missing == ViewSpec::Missing::skip && !set().scanned; }
  /// The sample at a position of an epoch. Precondition: !needs_scan().
  std::int64_t sample_at(std::int64_t position, std::int64_t epoch) const {
    return order_->sample(position, epoch);
  }
  std::vector<std::int64_t> samples_in(std::int64_t epoch, std::int64_t batch,
                                       RowRange range) const;
  void starts_of(std::int64_t sample, std::int64_t* starts) const { set().starts(sample, starts); }
  /// Where the windows of some rows begin.
  std::vector<Dims> starts_in(std::int64_t epoch, std::int64_t batch, RowRange range) const;

  /// How long the windows of a batch are where every one of them is partial; nullopt: as long as the
  /// view's.
  std::optional<Dims> partial_sizes(std::int64_t batch) const;
  /// The layouts of tensors of such windows.
  std::vector<TensorLayout> layouts_of(const Dims& sizes) const;

  /// Bytes of the lists that the view keeps.
  std::uint64_t held_memory() const;

 private:
  void cover(const Dims& starts, Dims& sizes) const;

  const std::shared_ptr<const ViewSpec> spec_;
  const SampleOrder::Inputs values_;
  const std::shared_ptr<const SampleOrder> order_;
  Dims sizes_;                // of the windows
  bool has_partial_ = false;  // "edge": "partial" along one of them
};

/// Throws invalid_argument where "remainder" drops the only batch of so many samples.
void check_batches(const ViewSpec& spec, std::int64_t samples);

}  // namespace batchfs
