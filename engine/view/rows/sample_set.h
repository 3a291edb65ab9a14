#pragma once
// The samples of a view of windows: which windows they are, and where each begins.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/view/axes.h"
#include "engine/view/list/listed_samples.h"
#include "engine/view/list/restricted_list.h"
#include "engine/view/samples/missing.h"
#include "engine/view/samples/restrictions.h"
#include "engine/view/samples/sample_index.h"
#include "engine/view/spec.h"

namespace batchfs {

/// Immutable once made, thread-safe. Nothing in it grows with the number of samples but an index (a
/// bit a window) and a list (8 bytes a sample).
struct SampleSet {
  WindowGrid grid;             // of the windows' starts
  std::vector<Reach> reaches;  // per window dimension
  /// Steps that offsets and "reserve" go before (0 or less) and after (0 or more) a window.
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  std::shared_ptr<const RestrictedList> listed;  // null: the samples are windows of the grid
  /// The windows that joint restrictions allow; null: every window of the grid.
  std::shared_ptr<const SampleIndex> allowed;
  /// The windows that are samples; null: every window of the grid.
  std::shared_ptr<const SampleIndex> index;
  bool scanned = false;  // with "missing": "skip", is known which windows are samples
  std::int64_t samples = 1;
  std::int64_t windows = 1, all_windows = 1;  // of the grid; before restrictions
  /// Windows that are not samples: how many each restriction left out, in the order of application.
  Dropped dropped;
  std::vector<std::string> warnings;  // of the split

  /// Writes where the window of a sample begins: a position of the selection per window dimension.
  void starts(std::int64_t sample, std::int64_t* out) const;
  /// Windows that restrictions leave, with or without missing values.
  std::int64_t allowed_windows() const { return allowed != nullptr ? allowed->samples() : windows; }
  /// Windows that may be samples: of the grid, of which a list is part.
  std::int64_t windows_to_scan() const { return listed != nullptr ? count_windows(grid) : windows; }
  const SampleList* list() const { return listed != nullptr ? listed->list.get() : nullptr; }

  /// The same set when a scan has found the windows without missing values; null: every window is a
  /// sample, as for estimates. Throws invalid_argument where none is left, internal for an index of
  /// another view.
  SampleSet scanned_by(std::shared_ptr<const SampleIndex> found, const ViewSpec& spec) const;
  /// The fields of the view that restrictions read.
  RestrictedView restricted(const Dataset& dataset, const ViewSpec& spec, const ViewAxes& axes,
                            TimeStepsByDim& times) const {
    return {dataset, spec.samples, axes.selected, axes.windows, reaches, times};
  }
  /// The fields of the view that lists and weights read.
  ListingView listing(const Dataset& dataset, const ViewAxes& axes) const {
    return {dataset, axes.selected, axes.windows, reaches, ranges};
  }

 private:
  friend SampleSet choose_samples(const Dataset&, const ViewAxes&, ViewSpec&,
                                  const std::vector<TensorDefinition>&, TimeStepsByDim&);
  void take(std::shared_ptr<const RestrictedList> left);
};

/// Applies the restrictions of a view to its windows, or to its list, whose digest goes into
/// `spec`. The windows of `axes` are known, and the offsets of `definitions`. Throws
/// invalid_argument where no window fits or none is left, and as each restriction does.
SampleSet choose_samples(const Dataset& dataset, const ViewAxes& axes, ViewSpec& spec,
                         const std::vector<TensorDefinition>& definitions, TimeStepsByDim& times);

}  // namespace batchfs
