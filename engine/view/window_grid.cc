#include "engine/view/window_grid.h"

#include "engine/view/samples/every.h"
#include "engine/view/window_checks.h"

namespace batchfs {

WindowGrid window_grid(const std::vector<WindowSpec>& windows,
                       const std::vector<std::pair<std::int64_t, std::int64_t>>& ranges,
                       const Dataset& dataset, const std::map<std::string, Positions>& selected,
                       TimeStepsByDim& times) {
  WindowGrid grid;
  std::int64_t all = 1;
  for (std::size_t w = 0; w < windows.size(); ++w) {
    const WindowSpec& window = windows[w];
    grid.strides.push_back(window.stride);
    if (window.every) {
      grid.first.push_back(0);
      grid.counts.push_back(0);
    } else {
      const auto [first, last] =
          start_numbers(window, selected.at(window.dim).size(), ranges[w].first, ranges[w].second);
      grid.first.push_back(first);
      grid.counts.push_back(last - first + 1);
    }
  }
  for (std::size_t w = 0; w < windows.size(); ++w) {
    if (windows[w].every)
      grid.keep(w, starts_every(windows[w], dataset,
                                *times.along(windows[w].dim, windows[w].every_path), ranges[w]));
    if (__builtin_mul_overflow(all, grid.counts[w], &all) || all > INT64_C(1) << 60)
      throw Error(ErrorCode::not_supported, "the view has more than 2^60 samples");
  }
  return grid;
}

}  // namespace batchfs
