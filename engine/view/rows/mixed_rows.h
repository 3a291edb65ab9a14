#pragma once
// The rows of a mixture: samples of several views, each in its own order, in the proportions of the
// file. Nothing in it grows with the number of samples.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/view/mix/mix_schedule.h"
#include "engine/view/mix/mix_spec.h"
#include "engine/view/mix/mixed_plan.h"
#include "engine/view/row_range.h"
#include "engine/view/view.h"

namespace batchfs {

/// A sample's number is its number in its component, counted on from those of the components before.
/// Immutable, thread-safe.
class MixedRows {
 public:
  struct Sample {
    std::size_t component;
    std::int64_t number;  // in it
  };

  /// `firsts`: of each component; `first_positions`: what is added to the positions of each, per
  /// window dimension; `warnings`: of the mixture itself. Throws invalid_argument where there is no
  /// batch.
  MixedRows(MixSpec spec, MixSchedule schedule, std::vector<std::shared_ptr<const View>> components,
            std::vector<FirstParts> firsts, std::vector<std::vector<std::int64_t>> first_positions,
            std::vector<std::string> warnings);

  const MixSpec& spec() const { return spec_; }
  const MixSchedule& schedule() const { return schedule_; }
  const std::vector<std::shared_ptr<const View>>& components() const { return components_; }
  /// The numbers of a component's first parts among those of the mixture.
  const FirstParts& first_parts(std::size_t component) const { return firsts_[component]; }
  /// The component that a variable of the mixture belongs to.
  std::size_t component_of_variable(std::uint32_t variable) const;
  const std::vector<std::string>& warnings() const { return warnings_; }
  /// The samples of some rows, by component.
  std::vector<Sample> samples_of(std::int64_t epoch, std::int64_t batch, RowRange range) const;
  /// The number of a sample in the mixture.
  std::int64_t number(const Sample& sample) const {
    return firsts_[sample.component].sample + sample.number;
  }

  std::int64_t samples() const { return samples_; }
  std::int64_t epoch_samples() const {
    return by_batch() ? schedule_.positions() * batch_size() : schedule_.positions();
  }
  std::int64_t batch_size() const { return spec_.view.batch_size; }
  std::int64_t batches() const;
  std::int64_t row_count(std::int64_t batch) const;
  std::int64_t sample_count(std::int64_t batch) const { return row_count(batch); }
  bool needs_scan() const;
  std::vector<std::int64_t> samples_in(std::int64_t epoch, std::int64_t batch,
                                       RowRange range) const;
  void starts_of(std::int64_t sample, std::int64_t* starts) const;
  std::vector<Dims> starts_in(std::int64_t epoch, std::int64_t batch, RowRange range) const;

 private:
  bool by_batch() const { return spec_.mixing == MixSpec::Mixing::batch; }
  Sample sample_of(std::size_t component, unsigned __int128 scheduled) const;

  const MixSpec spec_;
  const std::vector<std::shared_ptr<const View>> components_;
  const MixSchedule schedule_;
  const std::vector<FirstParts> firsts_;
  const std::vector<std::vector<std::int64_t>> first_positions_;  // per window dimension
  const std::vector<std::string> warnings_;
  std::int64_t samples_ = 0;
};

}  // namespace batchfs
