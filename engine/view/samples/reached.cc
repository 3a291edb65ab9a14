#include "engine/view/samples/reached.h"

#include <algorithm>

namespace batchfs {

namespace {

/// With more offsets than this, positions between them count as reached too.
constexpr std::size_t kMaxOffsets = 64;

/// Counts, for each position, the windows that begin there less those that end there.
class Cover {
 public:
  explicit Cover(std::int64_t length)
      : length_(length), change_(static_cast<std::size_t>(length) + 1) {}

  /// Position `first` and those after it; on a circle those behind the end are at its beginning.
  void add(std::int64_t first, std::int64_t count, bool circle) {
    if (!circle) {
      const std::int64_t begin = std::max<std::int64_t>(first, 0);
      mark(begin, std::min(first + count, length_));
      return;
    }
    if (count >= length_) return mark(0, length_);
    first = ((first % length_) + length_) % length_;
    mark(first, std::min(first + count, length_));
    mark(0, first + count - length_);
  }

  Positions of(const Positions& selected) const {
    std::vector<std::int64_t> reached;
    std::int64_t windows = 0;
    for (std::int64_t p = 0; p < length_; ++p) {
      windows += change_[static_cast<std::size_t>(p)];
      if (windows > 0) reached.push_back(selected[p]);
    }
    return Positions::list(std::move(reached));
  }

 private:
  void mark(std::int64_t begin, std::int64_t end) {
    if (end <= begin) return;
    ++change_[static_cast<std::size_t>(begin)];
    --change_[static_cast<std::size_t>(end)];
  }

  std::int64_t length_;
  std::vector<std::int64_t> change_;
};

void add_windows(const AxisPlacement& axis, const WindowGrid& grid, Cover& cover) {
  const auto w = static_cast<std::size_t>(axis.window);
  const bool by_range = axis.by_label == nullptr && axis.offsets.size() > kMaxOffsets;
  const auto [least, most] = std::minmax_element(axis.offsets.begin(), axis.offsets.end());
  for (std::int64_t i = 0; i < grid.counts[w]; ++i) {
    const std::int64_t start = grid.start(w, i);
    if (by_range)
      cover.add(start + *least, *most - *least + axis.size, axis.wrap);
    else
      for (std::size_t o = 0; o < axis.offsets.size(); ++o)
        cover.add(axis.first(o, start), axis.size, axis.wrap);
  }
}

}  // namespace

std::vector<Positions> reached_positions(const ViewScan& scan, std::uint32_t variable) {
  std::vector<const VariablePlacement*> placements;
  for (const VariablePlacement& placement : *scan.placements)
    if (placement.variable == variable) placements.push_back(&placement);
  std::vector<Positions> reached;
  for (std::size_t d = 0; !placements.empty() && d < placements.front()->axes.size(); ++d) {
    const AxisPlacement& first = placements.front()->axes[d];
    if (first.window < 0 ||
        scan.grid.restricted(static_cast<std::size_t>(first.window)) == nullptr) {
      reached.push_back(first.selected);
      continue;
    }
    Cover cover(first.selected.size());
    for (const VariablePlacement* placement : placements)
      add_windows(placement->axes[d], scan.grid, cover);
    reached.push_back(cover.of(first.selected));
  }
  return reached;
}

std::vector<Positions> positions_to_read(const View& view, std::uint32_t variable) {
  return view.order() != nullptr ? reached_positions(view.scan(), variable)
                                 : positions_selected(view, variable);
}

std::vector<Positions> positions_selected(const View& view, std::uint32_t variable) {
  std::vector<Positions> selected;
  for (const std::string& dim : view.variables()[variable]->dims)
    selected.push_back(view.selected(dim));
  return selected;
}

}  // namespace batchfs
