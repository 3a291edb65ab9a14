#include "engine/view/samples/missing.h"

#include <algorithm>
#include <utility>

namespace batchfs {

namespace {

/// (window number along a dimension, place in the list of indices) for every index that the window
/// holds.
using Pairs = std::vector<std::pair<std::int64_t, std::size_t>>;

/// Calls `found(position of the selection, place in the list)` for each index that is selected.
template <class Found>
void find_positions(const AxisPlacement& axis, const std::vector<std::int64_t>& indices,
                    Found&& found) {
  if (axis.selected.is_range()) {
    for (std::size_t i = 0; i < indices.size(); ++i) found(indices[i] - axis.selected[0], i);
    return;
  }
  const auto [first, end] = axis.selected.held();
  for (std::int64_t p = first; p < end; ++p) {
    const auto it = std::lower_bound(indices.begin(), indices.end(), axis.selected[p]);
    if (it != indices.end() && *it == axis.selected[p])
      found(p, static_cast<std::size_t>(it - indices.begin()));
  }
}

/// Where the windows of a sample begin at labels. Such a dimension is not a circle.
Pairs pairs_by_label(const AxisPlacement& axis, const std::vector<std::int64_t>& indices,
                     const WindowGrid& grid, std::size_t w) {
  Pairs pairs;
  find_positions(axis, indices, [&](std::int64_t p, std::size_t place) {
    for (std::size_t o = 0; o < axis.offsets.size(); ++o) {
      // Windows begin later from start to start: the first one that reaches p, and those after it.
      std::int64_t low = 0, high = grid.counts[w];
      while (low < high) {
        const std::int64_t middle = low + (high - low) / 2;
        if (axis.first(o, grid.start(w, middle)) + axis.size > p)
          high = middle;
        else
          low = middle + 1;
      }
      for (; low < grid.counts[w] && axis.first(o, grid.start(w, low)) <= p; ++low)
        pairs.emplace_back(low, place);
    }
  });
  return pairs;
}

Pairs pairs_of(const AxisPlacement& axis, const std::vector<std::int64_t>& indices,
               const WindowGrid& grid, std::size_t w) {
  const std::int64_t first = grid.first[w], count = grid.counts[w],
                     stride = grid.strides[w] * axis.scale;
  const std::vector<std::int64_t>* allowed = grid.restricted(w);
  const std::int64_t length = axis.selected.size();
  Pairs pairs;
  // Windows that hold position p of the selection, p possibly beyond the end when the dimension is
  // a circle.
  auto add = [&](std::int64_t p, std::size_t place) {
    for (const std::int64_t offset : axis.offsets) {
      const std::int64_t step = offset * axis.scale;
      // start + step <= p < start + step + size, where start = stride * j
      const std::int64_t low = p - step - axis.size + 1, high = p - step;
      if (high < 0) continue;
      const std::int64_t least = low <= 0 ? 0 : (low + stride - 1) / stride;
      if (allowed != nullptr) {
        for (auto j = std::lower_bound(allowed->begin(), allowed->end(), least);
             j != allowed->end() && *j <= high / stride; ++j)
          pairs.emplace_back(j - allowed->begin(), place);
        continue;
      }
      const std::int64_t from = std::max(first, least);
      const std::int64_t to = std::min(first + count - 1, high / stride);
      for (std::int64_t j = from; j <= to; ++j) pairs.emplace_back(j - first, place);
    }
  };
  auto add_position = [&](std::int64_t p, std::size_t place) {
    if (!axis.wrap) return add(p, place);
    std::int64_t least = 0, most = 0;
    for (std::int64_t step : axis.offsets) {
      least = std::min(least, step * axis.scale);
      most = std::max(most, step * axis.scale);
    }
    // Every turn of the circle that a window with these offsets can reach.
    const std::int64_t turns_back = (-least + length - 1) / length;
    for (std::int64_t q = p - turns_back * length; q < length + most + axis.size; q += length)
      add(q, place);
  };
  find_positions(axis, indices, add_position);
  return pairs;
}

/// One dimension after the other: from missing indices to the windows, along it, that hold one.
/// Bytes count whether a window holds any, wider elements how many.
template <class Element>
void replace_by_windows(const VariablePlacement& placement, const WindowGrid& grid,
                        MissingBoxOf<Element>& box) {
  constexpr bool kCounts = sizeof(Element) > 1;
  for (std::size_t d = 0; d < placement.axes.size(); ++d) {
    const AxisPlacement& axis = placement.axes[d];
    if (axis.window < 0) continue;
    const auto w = static_cast<std::size_t>(axis.window);
    Pairs pairs = axis.by_label != nullptr ? pairs_by_label(axis, box.indices[d], grid, w)
                                           : pairs_of(axis, box.indices[d], grid, w);
    std::sort(pairs.begin(), pairs.end());
    if (!kCounts) pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
    std::vector<std::int64_t> windows;
    for (const auto& [window, place] : pairs)
      if (windows.empty() || windows.back() != window) windows.push_back(window);
    std::size_t outer = 1, inner = 1;
    for (std::size_t k = 0; k < d; ++k) outer *= box.indices[k].size();
    for (std::size_t k = d + 1; k < box.indices.size(); ++k) inner *= box.indices[k].size();
    std::vector<Element> result(outer * windows.size() * inner);
    for (std::size_t o = 0; o < outer; ++o) {
      std::size_t at = 0;
      for (const auto& [window, place] : pairs) {
        if (windows[at] != window) ++at;
        const Element* from = box.missing.data() + (o * box.indices[d].size() + place) * inner;
        Element* to = result.data() + (o * windows.size() + at) * inner;
        for (std::size_t i = 0; i < inner; ++i) {
          if constexpr (kCounts)
            to[i] += from[i];
          else
            to[i] |= from[i];
        }
      }
    }
    box.indices[d] = std::move(windows);
    box.missing = std::move(result);
  }
}

/// Calls `enter(window, element)` for each window that holds a missing value.
template <class Element, class Enter>
void for_each_window(const VariablePlacement& placement, const WindowGrid& grid,
                     MissingBoxOf<Element> box, Enter&& enter) {
  replace_by_windows(placement, grid, box);

  // Window dimensions that the variable lacks: every window along them.
  const std::size_t dims = grid.counts.size();
  std::vector<std::int64_t> number_strides(dims, 1);
  for (std::size_t w = dims; w-- > 1;) number_strides[w - 1] = number_strides[w] * grid.counts[w];
  std::vector<bool> has(dims);
  for (const AxisPlacement& axis : placement.axes)
    if (axis.window >= 0) has[static_cast<std::size_t>(axis.window)] = true;
  auto enter_all = [&](auto&& self, std::size_t w, std::int64_t number, Element element) -> void {
    if (w == dims) return enter(number, element);
    if (has[w]) return self(self, w + 1, number, element);
    for (std::int64_t j = 0; j < grid.counts[w]; ++j)
      self(self, w + 1, number + j * number_strides[w], element);
  };
  for (std::size_t i = 0; i < box.missing.size(); ++i) {
    if (box.missing[i] == 0) continue;
    std::size_t rest = i;
    std::int64_t number = 0;
    for (std::size_t d = placement.axes.size(); d-- > 0;) {
      const std::size_t at = rest % box.indices[d].size();
      rest /= box.indices[d].size();
      const int w = placement.axes[d].window;
      if (w >= 0) number += box.indices[d][at] * number_strides[static_cast<std::size_t>(w)];
    }
    enter_all(enter_all, 0, number, box.missing[i]);
  }
}

}  // namespace

void mark_windows(const VariablePlacement& placement, const WindowGrid& grid, MissingBox box,
                  MissingMarks& marks) {
  for_each_window(placement, grid, std::move(box),
                  [&](std::int64_t window, std::uint8_t) { marks.mark(window); });
}

void count_missing(const VariablePlacement& placement, const WindowGrid& grid, CountedBox box,
                   MissingCounts& counts) {
  for_each_window(placement, grid, std::move(box),
                  [&](std::int64_t window, std::uint32_t values) { counts.add(window, values); });
}

}  // namespace batchfs
