#pragma once
// The positions of the selection that the windows of a sample hold along one dimension.

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/view/geometry.h"

namespace batchfs {

/// Calls `use(begin, end)` for the positions of a dimension of `length` from `first` on: those beyond
/// its ends are at the other end of a circle, else none.
template <class Use>
void for_each_inside(std::int64_t first, std::int64_t count, std::int64_t length, bool circle,
                     Use&& use) {
  const auto inside = [&](std::int64_t begin, std::int64_t end) {
    begin = std::max<std::int64_t>(begin, 0);
    end = std::min(end, length);
    if (begin < end) use(begin, end);
  };
  if (!circle) return inside(first, first + count);
  if (count >= length) return inside(0, length);
  first = ((first % length) + length) % length;
  inside(first, first + count);
  inside(0, first + count - length);
}

/// Where the windows of a sample lie: offsets whose windows touch are one stretch. Refers to the
/// placement, along whose dimension windows slide.
class WindowStretches {
 public:
  explicit WindowStretches(const AxisPlacement& axis);

  std::size_t size() const { return stretches_.size(); }
  /// Throws not_supported where the stretches of so many starts are too many to enter one by one.
  void check_starts(std::int64_t starts) const;
  /// The first position of a stretch of the sample at `start`, which may lie outside, and how many.
  std::pair<std::int64_t, std::int64_t> at(std::size_t stretch, std::int64_t start) const {
    const auto& [first, count] = stretches_[stretch];
    return {axis_.by_label != nullptr ? axis_.first(stretch, start) : axis_.scale * start + first,
            count};
  }
  /// All of them: with what lies between them.
  std::pair<std::int64_t, std::int64_t> hull(std::int64_t start) const;

 private:
  const AxisPlacement& axis_;
  /// First positions from that of the start, ascending, and lengths.
  std::vector<std::pair<std::int64_t, std::int64_t>> stretches_;
};

}  // namespace batchfs
