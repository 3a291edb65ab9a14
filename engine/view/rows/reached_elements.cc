#include "engine/view/rows/reached_elements.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "engine/view/rows/reached.h"

namespace batchfs {

namespace {

/// The number of the window dimension that dimension `d` of a variable is; -1: none.
int window_along(const std::vector<const VariablePlacement*>& placements, std::size_t d) {
  for (const VariablePlacement* placement : placements)
    if (placement->axes[d].window >= 0) return placement->axes[d].window;
  return -1;
}

/// Do all placements take the same positions for each start?
bool is_common(const std::vector<const VariablePlacement*>& placements, std::size_t d) {
  const AxisPlacement& first = placements.front()->axes[d];
  return std::all_of(placements.begin(), placements.end(), [&](const VariablePlacement* each) {
    const AxisPlacement& axis = each->axes[d];
    return axis.window == first.window && axis.size == first.size && axis.scale == first.scale &&
           axis.wrap == first.wrap && axis.offsets == first.offsets &&
           axis.by_label == first.by_label && axis.selected.is_same(first.selected);
  });
}

/// Elements over groups along some dimensions and array indices along the others.
struct Marks {
  Dims shape;
  std::vector<std::uint8_t> marked;  // row-major
};

/// Replaces groups along a dimension by array indices: marked where one of the groups of an index
/// is. `ranges`: the groups that there are; `sets`: those of each index, within these.
void widen(Marks& marks, std::size_t d, const std::vector<GroupRange>& ranges,
           const std::vector<const std::vector<GroupRange>*>& sets) {
  std::size_t outer = 1, inner = 1;
  for (std::size_t k = 0; k < d; ++k) outer *= static_cast<std::size_t>(marks.shape[k]);
  for (std::size_t k = d + 1; k < marks.shape.size(); ++k)
    inner *= static_cast<std::size_t>(marks.shape[k]);
  const auto groups = static_cast<std::size_t>(marks.shape[d]);
  // Where the groups of each index are: places of the ranges that are marked.
  std::vector<std::int64_t> before{0};
  for (const GroupRange& range : ranges) before.push_back(before.back() + range.end - range.first);
  const auto place = [&](std::int64_t group) {
    const auto range =
        std::upper_bound(ranges.begin(), ranges.end(), group,
                         [](std::int64_t g, const GroupRange& r) { return g < r.end; });
    return static_cast<std::size_t>(before[static_cast<std::size_t>(range - ranges.begin())] +
                                    group - range->first);
  };
  std::vector<std::vector<std::pair<std::size_t, std::size_t>>> places;
  for (const auto* set : sets) {
    auto& mine = places.emplace_back();
    for (const GroupRange& range : *set) {
      const std::size_t first = place(range.first);
      mine.emplace_back(first, first + static_cast<std::size_t>(range.end - range.first));
    }
  }
  // Inner elements whose counts are in memory at a time.
  const std::size_t block = std::clamp<std::size_t>((std::size_t{1} << 20) / (groups + 1), 1, 512);
  std::vector<std::uint8_t> result(outer * sets.size() * inner);
  std::vector<std::uint32_t> counts((groups + 1) * std::min(inner, block));
  for (std::size_t o = 0; o < outer; ++o)
    for (std::size_t first = 0; first < inner; first += block) {
      const std::size_t width = std::min(block, inner - first);
      std::fill_n(counts.begin(), width, 0);
      for (std::size_t g = 0; g < groups; ++g)
        for (std::size_t i = 0; i < width; ++i)
          counts[(g + 1) * width + i] =
              counts[g * width + i] + marks.marked[(o * groups + g) * inner + first + i];
      for (std::size_t k = 0; k < sets.size(); ++k)
        for (const auto& [begin, end] : places[k])
          for (std::size_t i = 0; i < width; ++i)
            result[(o * sets.size() + k) * inner + first + i] |=
                counts[end * width + i] != counts[begin * width + i] ? 1 : 0;
    }
  marks.shape[d] = static_cast<std::int64_t>(sets.size());
  marks.marked = std::move(result);
}

}  // namespace

ReachedElements::ReachedElements(const std::vector<const VariablePlacement*>& placements,
                                 const WindowGrid& grid, const StartTable& starts,
                                 const std::vector<std::size_t>& dims) {
  std::vector<std::size_t> windows;  // that the variable is along
  for (const std::size_t d : dims)
    if (const int w = window_along(placements, d); w >= 0)
      windows.push_back(static_cast<std::size_t>(w));
  std::sort(windows.begin(), windows.end());
  find_dims(placements, grid, starts.along(windows), windows, dims);
  if (dims_.size() < 2) {
    dims_.clear();
    return;
  }
  std::vector<std::size_t> along;
  for (const std::size_t d : dims_)
    along.push_back(static_cast<std::size_t>(window_along(placements, d)));
  starts_ = starts.along(along);
  for (const VariablePlacement* placement : placements) {
    std::vector<AxisGroups>& own = groups_.emplace_back();
    for (std::size_t k = 0; k < dims_.size(); ++k)
      own.emplace_back(placement->axes[dims_[k]], grid, along[k], starts_, k);
  }
}

/// Dimensions along which the starts of samples depend on those along others, and those along which
/// tensors have other windows where starts are left out.
void ReachedElements::find_dims(const std::vector<const VariablePlacement*>& placements,
                                const WindowGrid& grid, const StartTable& starts,
                                const std::vector<std::size_t>& windows,
                                const std::vector<std::size_t>& dims) {
  const bool is_product = starts.is_product();
  for (const std::size_t d : dims) {
    const int w = window_along(placements, d);
    if (w < 0) continue;
    const auto k = static_cast<std::size_t>(
        std::lower_bound(windows.begin(), windows.end(), static_cast<std::size_t>(w)) -
        windows.begin());
    const bool is_restricted =
        grid.restricted(static_cast<std::size_t>(w)) != nullptr || !starts.is_free(k);
    if ((!is_product && starts.groups(k) > 1) ||
        ((!is_product || is_restricted) && !is_common(placements, d)))
      dims_.push_back(d);
  }
}

std::vector<bool> ReachedElements::at(const std::vector<std::vector<std::int64_t>>& indices) const {
  std::vector<bool> result;
  for (const std::vector<AxisGroups>& groups : groups_) {
    std::vector<std::vector<GroupRange>> ranges(dims_.size());
    std::vector<std::vector<const std::vector<GroupRange>*>> sets(dims_.size());
    Marks marks;
    std::size_t size = 1;
    for (std::size_t k = 0; k < dims_.size(); ++k) {
      const std::vector<GroupRange>* before = nullptr;
      for (const std::int64_t index : indices[k]) {
        const std::vector<GroupRange>& set = groups[k].of(index);
        sets[k].push_back(&set);
        if (&set != before) ranges[k].insert(ranges[k].end(), set.begin(), set.end());
        before = &set;
      }
      merge_ranges(ranges[k]);
      std::int64_t count = 0;
      for (const GroupRange& range : ranges[k]) count += range.end - range.first;
      marks.shape.push_back(count);
      size *= static_cast<std::size_t>(count);
    }
    marks.marked.resize(size);
    if (size > 0) starts_.mark(ranges, marks.marked.data());
    for (std::size_t k = 0; k < dims_.size(); ++k) widen(marks, k, ranges[k], sets[k]);
    result.resize(marks.marked.size());
    for (std::size_t i = 0; i < result.size(); ++i)
      if (marks.marked[i] != 0) result[i] = true;
  }
  return result;
}

ReachedChoices::ReachedChoices(const Reached& reached) : steps_(reached.positions.size(), 0) {
  if (reached.elements == nullptr) return;
  const std::vector<std::size_t>& dims = reached.elements->dims();
  std::vector<std::vector<std::int64_t>> indices(dims.size());
  std::int64_t step = 1;
  for (std::size_t k = dims.size(); k-- > 0;) {
    const Positions& positions = reached.positions[dims[k]];
    for (std::int64_t i = 0; i < positions.size(); ++i) indices[k].push_back(positions[i]);
    steps_[dims[k]] = step;
    step *= positions.size();
  }
  reached_ = reached.elements->at(indices);
}

namespace {

/// `scan` has the placements of one variable.
Reached reached(const ViewScan& scan, std::uint32_t variable, const StartTable& starts,
                const std::vector<std::size_t>* among) {
  std::vector<const VariablePlacement*> placements;
  for (const VariablePlacement& placement : *scan.placements)
    if (placement.variable == variable) placements.push_back(&placement);
  Reached result{reached_positions(scan, variable, &starts), nullptr};
  if (placements.empty()) return result;
  std::vector<std::size_t> dims(result.positions.size());
  std::iota(dims.begin(), dims.end(), 0);
  auto elements = std::make_shared<const ReachedElements>(placements, scan.grid, starts,
                                                          among != nullptr ? *among : dims);
  if (!elements->dims().empty()) result.elements = std::move(elements);
  return result;
}

}  // namespace

Reached reached_by_samples(const View& view, std::uint32_t variable, const StartTable& starts,
                           const std::vector<std::size_t>* among) {
  return reached(scan_of(view), variable, starts, among);
}

Reached reached_of_made(const View& view, std::uint32_t number, const StartTable& starts,
                        const std::vector<std::size_t>* among) {
  ViewScan scan = scan_of(view);
  std::vector<VariablePlacement> placements;
  for (const auto* all : {scan.made, scan.coarsened})
    for (const VariablePlacement& placement : *all)
      if (placement.made && placement.variable == number) placements.push_back(placement);
  scan.placements = &placements;
  return reached(scan, number, starts, among);
}

}  // namespace batchfs
