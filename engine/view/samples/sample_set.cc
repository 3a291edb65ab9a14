#include "engine/view/samples/sample_set.h"

#include "engine/view/allowed_windows.h"
#include "engine/view/tensors/tensor_definitions.h"
#include "engine/view/window_grid.h"

namespace batchfs {

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
