#include "engine/view/samples/missing_counts.h"

#include <algorithm>

#include "engine/base/error.h"

namespace batchfs {

namespace {

constexpr std::int64_t kMaxCountedWindows = INT64_C(1) << 34;  // 64 GiB of counts

std::size_t checked_count(std::int64_t windows) {
  if (windows > kMaxCountedWindows)
    throw Error(ErrorCode::not_supported,
                "missing.at_most: more than 2^34 windows; use a larger stride");
  return static_cast<std::size_t>(windows);
}

/// Positions that the placement of a part of a concatenated dimension has: others have the rest.
bool has_position(const AxisPlacement& axis, std::int64_t p) {
  return axis.selected[p] != Positions::kNone || axis.gaps()[p] == Positions::kNone;
}

std::int64_t held(const AxisPlacement& axis) {
  if (!axis.padded) return axis.extent();
  std::int64_t count = 0;
  for (std::int64_t p = 0; p < axis.selected.size(); ++p) count += has_position(axis, p) ? 1 : 0;
  return count;
}

/// Elements of the windows of a sample that lie inside the selection.
std::int64_t inside(const AxisPlacement& axis, std::int64_t start) {
  if (axis.padded) {
    const std::int64_t length = axis.selected.size();
    std::int64_t count = 0;
    for (std::size_t o = 0; o < axis.offsets.size(); ++o)
      for (std::int64_t k = 0; k < axis.size; ++k) {
        std::int64_t p = axis.first(o, start) + k;
        if (axis.wrap) p = ((p % length) + length) % length;
        count += p < length && has_position(axis, p) ? 1 : 0;
      }
    return count;
  }
  if (axis.wrap) return axis.extent();
  std::int64_t count = 0;
  for (std::size_t o = 0; o < axis.offsets.size(); ++o) {
    const std::int64_t first = axis.first(o, start);
    count += std::min(first + axis.size, axis.selected.size()) - first;
  }
  return count;
}

}  // namespace

WindowElements::WindowElements(std::vector<const VariablePlacement*> placements,
                               const WindowGrid& grid)
    : grid_(&grid) {
  bool all_inside = true;
  for (const VariablePlacement* placement : placements) {
    std::int64_t whole = 1, full = 1;
    std::vector<Axis>& axes = axes_.emplace_back();
    for (const AxisPlacement& axis : placement->axes) {
      const std::int64_t extent = axis.window < 0 ? held(axis) : axis.extent();
      if (__builtin_mul_overflow(full, extent, &full)) full = INT64_MAX;
      if (axis.window < 0) {
        whole *= full == INT64_MAX ? 1 : extent;
        continue;
      }
      Axis& along = axes.emplace_back(Axis{static_cast<std::size_t>(axis.window), {}});
      for (std::int64_t i = 0; i < grid.counts[along.window]; ++i) {
        along.inside.push_back(inside(axis, grid.start(along.window, i)));
        all_inside = all_inside && along.inside.back() == extent;
      }
    }
    whole_.push_back(whole);
    if (__builtin_add_overflow(full_, full, &full_) || full_ > UINT32_MAX)
      throw Error(ErrorCode::not_supported,
                  "missing.at_most: a sample has more than 4294967295 elements; take a smaller "
                  "window");
  }
  if (all_inside) axes_.clear();
}

std::int64_t WindowElements::of(std::int64_t window) const {
  if (axes_.empty()) return full_;
  Dims numbers(grid_->counts.size());
  for (std::size_t w = numbers.size(); w-- > 0;) {
    numbers[w] = window % grid_->counts[w];
    window /= grid_->counts[w];
  }
  std::int64_t elements = 0;
  for (std::size_t p = 0; p < axes_.size(); ++p) {
    std::int64_t product = whole_[p];
    for (const Axis& axis : axes_[p])
      product *= axis.inside[static_cast<std::size_t>(numbers[axis.window])];
    elements += product;
  }
  return elements;
}

MissingCounts::MissingCounts(std::int64_t windows) : counts_(checked_count(windows)) {}

SampleIndex MissingCounts::index(const WindowElements& elements, double at_most) const {
  const auto windows = static_cast<std::int64_t>(counts_.size());
  std::vector<std::uint64_t> words((counts_.size() + 63) / 64);
  for (std::int64_t i = 0; i < windows; ++i) {
    const std::uint32_t missing =
        counts_[static_cast<std::size_t>(i)].load(std::memory_order_relaxed);
    // Divided as a user would: 29 of 100 is not more than 0.29.
    const bool keep = missing == 0 ||
                      static_cast<double>(missing) / static_cast<double>(elements.of(i)) <= at_most;
    if (keep) words[static_cast<std::size_t>(i / 64)] |= std::uint64_t{1} << (i % 64);
  }
  return SampleIndex(std::move(words), windows);
}

}  // namespace batchfs
