#pragma once
// Which groups of starts reach the positions of an array along one dimension.

#include <cstdint>
#include <vector>

#include "engine/view/geometry.h"
#include "engine/view/samples/start_table.h"

namespace batchfs {

/// The groups of one placement of a variable. Immutable, thread-safe.
class AxisGroups {
 public:
  /// Dimension `dim` of `starts` is that of the placement's windows, whose number in `grid` is
  /// `window`.
  AxisGroups(const AxisPlacement& axis, const WindowGrid& grid, std::size_t window,
             const StartTable& starts, std::size_t dim);

  /// Groups of which a window holds the array index, ascending ranges that do not touch.
  const std::vector<GroupRange>& of(std::int64_t index) const {
    static const std::vector<GroupRange> kNone;
    const auto i = static_cast<std::size_t>(index);
    return i >= set_of_.size() || set_of_[i] < 0 ? kNone
                                                 : sets_[static_cast<std::size_t>(set_of_[i])];
  }

 private:
  void enter(const AxisPlacement& axis, const std::vector<std::int32_t>& of_position);

  std::vector<std::int32_t> set_of_;  // by array index, a number in `sets_`; -1: none
  std::vector<std::vector<GroupRange>> sets_;
};

/// Merges ranges, which may overlap, into ascending ones that do not touch.
void merge_ranges(std::vector<GroupRange>& ranges);

}  // namespace batchfs
