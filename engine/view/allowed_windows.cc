#include "engine/view/allowed_windows.h"

#include <utility>

#include <fmt/format.h>

#include "engine/base/counted.h"
#include "engine/view/samples/mask.h"
#include "engine/view/split/part_windows.h"

namespace batchfs {

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

}  // namespace batchfs
