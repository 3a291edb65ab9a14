#include "engine/view/rows/reached.h"

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>

#include "engine/view/samples/cover.h"
#include "engine/view/tensors/tensor_set.h"

namespace batchfs {

namespace {

/// With more stretches than this, positions between them are read too.
constexpr std::size_t kMaxStretches = 64;

/// Counts, for each position, the windows that begin there less those that end there.
class Cover {
 public:
  explicit Cover(std::int64_t length)
      : length_(length), change_(static_cast<std::size_t>(length) + 1) {}

  /// Position `first` and those after it; on a circle those beyond the end are at its beginning.
  void add(std::pair<std::int64_t, std::int64_t> stretch, bool circle) {
    for_each_inside(stretch.first, stretch.second, length_, circle,
                    [&](std::int64_t begin, std::int64_t end) {
                      ++change_[static_cast<std::size_t>(begin)];
                      --change_[static_cast<std::size_t>(end)];
                    });
  }

  void add_reached(const Positions& selected, std::vector<std::int64_t>& reached) const {
    std::int64_t windows = 0;
    for (std::int64_t p = 0; p < length_; ++p) {
      windows += change_[static_cast<std::size_t>(p)];
      if (windows > 0 && selected[p] != Positions::kNone) reached.push_back(selected[p]);
    }
  }

 private:
  std::int64_t length_;
  std::vector<std::int64_t> change_;
};

/// The windows of samples along a dimension: of those of `starts`, or null of all of the grid.
void add_windows(const AxisPlacement& axis, const WindowGrid& grid, const StartTable* starts,
                 Cover& cover) {
  const auto w = static_cast<std::size_t>(axis.window);
  const WindowStretches stretches(axis);
  const bool by_range =
      starts == nullptr && axis.by_label == nullptr && stretches.size() > kMaxStretches;
  if (starts != nullptr) stretches.check_starts(grid.counts[w]);
  const auto add = [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t i = first; i < end; ++i) {
      const std::int64_t start = grid.start(w, i);
      if (by_range) cover.add(stretches.hull(start), axis.wrap);
      for (std::size_t s = 0; !by_range && s < stretches.size(); ++s)
        cover.add(stretches.at(s, start), axis.wrap);
    }
  };
  if (starts == nullptr) return add(0, grid.counts[w]);
  for (const StartTable::Starts& each : starts->starts(w)) add(each.first, each.end);
}

/// For placements of a variable of another source, which may have different positions each.
Positions reached_of_source(const std::vector<const VariablePlacement*>& placements, std::size_t d,
                            const WindowGrid& grid, const StartTable* starts) {
  std::vector<std::int64_t> reached;
  for (const VariablePlacement* placement : placements) {
    const AxisPlacement& axis = placement->axes[d];
    Cover cover(axis.selected.size());
    if (axis.window < 0)
      cover.add({0, axis.selected.size()}, false);
    else
      add_windows(axis, grid, starts, cover);
    cover.add_reached(axis.selected, reached);
  }
  std::sort(reached.begin(), reached.end());
  reached.erase(std::unique(reached.begin(), reached.end()), reached.end());
  return Positions::list(std::move(reached));
}

/// Where every window of an unrestricted dimension begins before the one before it ends, or where
/// there are too many to be entered one by one: the first position that any holds, and how many
/// follow up to the last one. nullopt else.
std::optional<std::pair<std::int64_t, std::int64_t>> covered_range(
    const std::vector<const VariablePlacement*>& placements, std::size_t d,
    const WindowGrid& grid) {
  constexpr std::int64_t kMaxEntered = 1 << 20;
  std::int64_t begin = INT64_MAX, end = 0, length = 0;
  bool has_gaps = false;
  for (const VariablePlacement* placement : placements) {
    const AxisPlacement& axis = placement->axes[d];
    const auto w = static_cast<std::size_t>(axis.window);
    length = axis.selected.size();
    if (axis.wrap || axis.by_label != nullptr || grid.counts[w] == 0)
      return std::pair{INT64_C(0), length};
    const std::int64_t last = grid.start(w, grid.counts[w] - 1);
    const auto [least, most] = std::minmax_element(axis.offsets.begin(), axis.offsets.end());
    begin = std::min(begin, axis.scale * (grid.start(w, 0) + *least));
    end = std::max(end, axis.scale * (last + *most) + axis.size);
    has_gaps = has_gaps || (grid.counts[w] > 1 &&
                            axis.scale * (grid.start(w, 1) - grid.start(w, 0)) > axis.size);
  }
  begin = std::clamp<std::int64_t>(begin, 0, length);
  end = std::clamp(end, begin, length);
  if (has_gaps && length <= kMaxEntered) return std::nullopt;
  return std::pair{begin, end - begin};
}

}  // namespace

Positions without_gaps(const Positions& positions) {
  if (!positions.has_gaps()) return positions;
  std::vector<std::int64_t> left;
  for (std::int64_t i = 0; i < positions.size(); ++i)
    if (positions[i] != Positions::kNone) left.push_back(positions[i]);
  return Positions::list(std::move(left));
}

std::int64_t chunks_along(const Positions& positions, std::int64_t length) {
  if (positions.size() == 0) return 0;
  if (positions.is_range())
    return positions[positions.size() - 1] / length - positions[0] / length + 1;
  std::unordered_set<std::int64_t> chunks;
  for (std::int64_t i = 0; i < positions.size(); ++i) chunks.insert(positions[i] / length);
  return static_cast<std::int64_t>(chunks.size());
}

std::map<const Array*, double> bytes_to_read(const View& view) {
  std::map<const Array*, double> bytes;
  for (std::uint32_t v = 0; v < view.variables().size(); ++v) {
    const Array& array = *view.variables()[v]->array;
    const std::vector<Positions> positions = positions_in_windows(view, v);
    const auto chunk_bytes = static_cast<double>(array.chunk_bytes());
    double here = chunk_bytes;
    for (std::size_t d = 0; d < positions.size(); ++d)
      here *= static_cast<double>(chunks_along(positions[d], array.grid().chunk_shape()[d]));
    // Two variables may be fields of one array.
    double& all = bytes[&array];
    all = std::min(all + here, chunk_bytes * static_cast<double>(array.grid().chunk_count()));
  }
  return bytes;
}

namespace {

/// `tight`: without positions of the selection that no window of an unrestricted dimension holds.
std::vector<Positions> reached(const ViewScan& scan, std::uint32_t variable, bool tight,
                               const StartTable* starts = nullptr) {
  std::vector<const VariablePlacement*> placements;
  for (const VariablePlacement& placement : *scan.placements)
    if (placement.variable == variable) placements.push_back(&placement);
  std::vector<Positions> all;
  for (std::size_t d = 0; !placements.empty() && d < placements.front()->axes.size(); ++d) {
    const AxisPlacement& first = placements.front()->axes[d];
    if (first.durations != nullptr || first.selected.has_gaps() || first.scale > 1) {
      all.push_back(reached_of_source(placements, d, scan.grid, starts));
      continue;
    }
    const bool is_restricted =
        first.window >= 0 &&
        (scan.grid.restricted(static_cast<std::size_t>(first.window)) != nullptr ||
         (starts != nullptr && !starts->is_free(static_cast<std::size_t>(first.window))));
    if (first.window < 0 || (!is_restricted && !tight)) {
      all.push_back(first.selected);
      continue;
    }
    if (!is_restricted) {
      if (const auto range = covered_range(placements, d, scan.grid)) {
        all.push_back(first.selected.slice(range->first, range->second));
        continue;
      }
    }
    Cover cover(first.selected.size());
    for (const VariablePlacement* placement : placements)
      add_windows(placement->axes[d], scan.grid, starts, cover);
    std::vector<std::int64_t> positions;
    cover.add_reached(first.selected, positions);
    all.push_back(Positions::list(std::move(positions)));
  }
  return all;
}

}  // namespace

std::vector<Positions> reached_positions(const ViewScan& scan, std::uint32_t variable,
                                         const StartTable* starts) {
  return reached(scan, variable, false, starts);
}

std::vector<Positions> positions_in_windows(const View& view, std::uint32_t variable) {
  return view.order() != nullptr ? reached(scan_of(view), variable, true)
                                 : positions_selected(view, variable);
}

std::vector<Positions> positions_to_read(const View& view, std::uint32_t variable) {
  return view.order() != nullptr ? reached_positions(scan_of(view), variable)
                                 : positions_selected(view, variable);
}

std::vector<Positions> positions_selected(const View& view, std::uint32_t variable) {
  std::vector<Positions> selected;
  for (std::size_t d = 0; d < view.variables()[variable]->dims.size(); ++d)
    selected.push_back(without_gaps(view.tensor_set().stored[variable][d]));
  return selected;
}

}  // namespace batchfs
