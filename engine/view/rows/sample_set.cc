#include "engine/view/rows/sample_set.h"

#include <utility>

#include <fmt/format.h>

#include "engine/base/counted.h"
#include "engine/view/samples/mask.h"
#include "engine/view/samples/time_windows.h"
#include "engine/view/split/part_windows.h"
#include "engine/view/tensors/tensor_definitions.h"
#include "engine/view/window_grid.h"

namespace batchfs {

namespace {

/// The windows that a mask and a split leave together.
struct AllowedWindows {
  /// Null: every window of the grid.
  std::shared_ptr<const SampleIndex> index;
  Dropped dropped;  // "mask", "split" and "gap"; a window counts for the first that leaves it out
  std::vector<std::string> warnings;
};

/// Starts left out along one dimension leave the grid. Throws invalid_argument where no window is
/// left, and as restrict_by_mask() and keep_part().
AllowedWindows keep_allowed(const ViewSpec& spec, const RestrictedView& view, WindowGrid& grid) {
  AllowedWindows result;
  const auto keep_masked = [&] {
    auto left = restrict_by_mask(*spec.samples.mask, view, grid, result.dropped);
    result.index = in_both(result.index, left);
  };
  // The windows in an index have the numbers of the grid, which a restriction along one dimension
  // changes: a mask along one is applied before the split, one along several after it.
  const Variable* variable =
      spec.samples.mask ? view.dataset.find(spec.samples.mask->variable) : nullptr;
  const bool masked_first = variable != nullptr && variable->dims.size() == 1;
  if (masked_first) keep_masked();
  if (spec.split) {
    PartWindows left = keep_part(view, *spec.split, spec.part, grid);
    result.dropped.insert(result.dropped.end(), left.dropped.begin(), left.dropped.end());
    result.index = std::move(left.index);
    result.warnings = std::move(left.warnings);
  }
  if (spec.samples.mask && !masked_first) {
    const std::int64_t before =
        result.index != nullptr ? result.index->samples() : count_windows(grid);
    keep_masked();
    result.dropped.back().second = before - result.index->samples();
    if (result.index->samples() == 0)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: no sample is left: of {} in the part '{}' none passes",
                              spec.samples.mask->path, counted(before, "window"), spec.part.name));
  }
  return result;
}

}  // namespace

void SampleSet::starts(std::int64_t sample, std::int64_t* out) const {
  if (listed != nullptr) return listed->list->starts(sample, out);
  std::int64_t number = index != nullptr ? index->window(sample) : sample;
  for (std::size_t w = grid.counts.size(); w-- > 0;) {
    out[w] = grid.start(w, number % grid.counts[w]);
    number /= grid.counts[w];
  }
}

void SampleSet::take(std::shared_ptr<const RestrictedList> left) {
  grid = left->grid;
  allowed = left->allowed;
  dropped = left->dropped;
  warnings = left->warnings;
  all_windows = windows = samples = left->list->rows();
  for (const auto& [restriction, rows] : dropped) all_windows += rows;
  listed = std::move(left);
}

SampleSet SampleSet::scanned_by(std::shared_ptr<const SampleIndex> found,
                                const ViewSpec& spec) const {
  if (found != nullptr && found->windows() != windows_to_scan())
    throw Error(ErrorCode::internal, "the samples are those of another view");
  SampleSet set = *this;
  set.scanned = true;
  if (found == nullptr) return set;
  if (listed != nullptr) {
    set.take(without_missing_rows(*listed, spec.skip, std::move(found)));
    return set;
  }
  set.index = in_both(allowed, found);
  set.samples = set.index->samples();
  if (set.samples == 0) throw nothing_left(spec.skip, allowed_windows());
  set.dropped.emplace_back("missing", allowed_windows() - set.samples);
  return set;
}

SampleSet choose_samples(const Dataset& dataset, const ViewAxes& axes, ViewSpec& spec,
                         const std::vector<TensorDefinition>& definitions, TimeStepsByDim& times) {
  SampleSet set;
  set.reaches =
      resolve_reaches(definitions, spec.reserve, axes.windows, dataset, times, axes.joined);
  set.ranges = reserved_ranges(definitions, spec.reserve, axes.windows);
  const RestrictedView view = set.restricted(dataset, spec, axes, times);
  if (spec.list) {
    set.take(restrict_list(spec, view, listed_samples(spec, set.listing(dataset, axes))));
    return set;
  }
  set.grid = window_grid(spec.window, set.ranges, dataset, axes.selected, times);
  set.all_windows = count_windows(set.grid);
  set.dropped = restrict_windows(view, set.grid);
  AllowedWindows left = keep_allowed(spec, view, set.grid);
  set.dropped.insert(set.dropped.end(), left.dropped.begin(), left.dropped.end());
  set.warnings = std::move(left.warnings);
  set.index = set.allowed = std::move(left.index);
  set.windows = count_windows(set.grid);
  set.samples = set.allowed_windows();
  return set;
}

}  // namespace batchfs
