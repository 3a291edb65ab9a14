#include "tools/planning/box_union.h"

#include <algorithm>

namespace batchfs {

namespace {

constexpr std::int64_t kMaxCells = 1 << 20;

/// Where boxes begin and end along a dimension, sorted, each once.
std::vector<std::int64_t> borders_of(const std::vector<Box>& boxes, std::size_t d) {
  std::vector<std::int64_t> borders;
  for (const Box& box : boxes) {
    borders.push_back(box.start[d]);
    borders.push_back(box.start[d] + box.shape[d]);
  }
  std::sort(borders.begin(), borders.end());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  return borders;
}

std::int64_t index_of(const std::vector<std::int64_t>& borders, std::int64_t position) {
  return std::lower_bound(borders.begin(), borders.end(), position) - borders.begin();
}

/// Calls `use(linear, index)` for every cell of a box of cells.
template <class Use>
void for_each_cell(const Box& cells, const Dims& strides, Use use) {
  if (cells.empty()) return;
  Dims at(cells.shape.size());
  for (;;) {
    std::int64_t linear = 0;
    for (std::size_t d = 0; d < at.size(); ++d) linear += (cells.start[d] + at[d]) * strides[d];
    use(linear, at);
    std::size_t d = at.size();
    while (d > 0 && ++at[d - 1] == cells.shape[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

}  // namespace

std::int64_t covered_length(const std::vector<Box>& boxes, std::size_t d) {
  std::vector<std::pair<std::int64_t, std::int64_t>> intervals;
  for (const Box& box : boxes) intervals.emplace_back(box.start[d], box.start[d] + box.shape[d]);
  std::sort(intervals.begin(), intervals.end());
  std::int64_t length = 0, end = INT64_MIN;
  for (const auto& [from, to] : intervals) {
    length += std::max<std::int64_t>(0, to - std::max(from, end));
    end = std::max(end, to);
  }
  return length;
}

std::optional<std::int64_t> covered_elements(const std::vector<Box>& boxes) {
  if (boxes.empty()) return 0;
  // The borders of all boxes cut the space into cells, each wholly inside or outside of every box.
  const std::size_t rank = boxes[0].shape.size();
  std::vector<std::vector<std::int64_t>> borders;
  Dims counts(rank);
  std::int64_t cell_count = 1;
  for (std::size_t d = 0; d < rank; ++d) {
    borders.push_back(borders_of(boxes, d));
    counts[d] = static_cast<std::int64_t>(borders[d].size()) - 1;
    cell_count *= counts[d];
    if (cell_count == 0) return 0;
    if (cell_count > kMaxCells) return std::nullopt;
  }
  const Dims strides = c_strides(counts, 1);
  std::vector<char> covered(static_cast<std::size_t>(cell_count));
  std::int64_t steps = 0;
  for (const Box& box : boxes) {
    Box cells{Dims(rank), Dims(rank)};
    for (std::size_t d = 0; d < rank; ++d) {
      cells.start[d] = index_of(borders[d], box.start[d]);
      cells.shape[d] = index_of(borders[d], box.start[d] + box.shape[d]) - cells.start[d];
    }
    steps += cells.elements();
    if (steps > kMaxCells) return std::nullopt;
    for_each_cell(cells, strides, [&](std::int64_t linear, const Dims&) {
      covered[static_cast<std::size_t>(linear)] = 1;
    });
  }
  std::int64_t elements = 0;
  for_each_cell(whole_box(counts), strides, [&](std::int64_t linear, const Dims& at) {
    if (covered[static_cast<std::size_t>(linear)] == 0) return;
    std::int64_t size = 1;
    for (std::size_t d = 0; d < rank; ++d) {
      const auto i = static_cast<std::size_t>(at[d]);
      size *= borders[d][i + 1] - borders[d][i];
    }
    elements += size;
  });
  return elements;
}

}  // namespace batchfs
