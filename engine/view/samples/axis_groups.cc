#include "engine/view/samples/axis_groups.h"

#include <algorithm>

#include "engine/view/samples/cover.h"

namespace batchfs {

void merge_ranges(std::vector<GroupRange>& ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const GroupRange& a, const GroupRange& b) { return a.first < b.first; });
  std::size_t merged = 0;
  for (const GroupRange& range : ranges) {
    if (merged > 0 && range.first <= ranges[merged - 1].end)
      ranges[merged - 1].end = std::max(ranges[merged - 1].end, range.end);
    else
      ranges[merged++] = range;
  }
  ranges.resize(merged);
}

namespace {

/// The positions that windows of each group hold.
std::vector<std::vector<GroupRange>> held_positions(const AxisPlacement& axis,
                                                    const WindowGrid& grid, std::size_t window,
                                                    const StartTable& starts, std::size_t dim) {
  const WindowStretches stretches(axis);
  stretches.check_starts(grid.counts[window]);
  std::vector<std::vector<GroupRange>> held(static_cast<std::size_t>(starts.groups(dim)));
  for (const StartTable::Starts& each : starts.starts(dim)) {
    std::vector<GroupRange>& mine = held[static_cast<std::size_t>(each.group)];
    // Stretch by stretch, so that those of neighbouring starts continue one another.
    for (std::size_t s = 0; s < stretches.size(); ++s)
      for (std::int64_t i = each.first; i < each.end; ++i) {
        const auto [first, count] = stretches.at(s, grid.start(window, i));
        for_each_inside(
            first, count, axis.selected.size(), axis.wrap,
            [&](std::int64_t begin, std::int64_t end) {
              if (!mine.empty() && mine.back().first <= begin && begin <= mine.back().end)
                mine.back().end = std::max(mine.back().end, end);
              else
                mine.push_back({begin, end});
            });
      }
  }
  for (std::vector<GroupRange>& mine : held) merge_ranges(mine);
  return held;
}

}  // namespace

AxisGroups::AxisGroups(const AxisPlacement& axis, const WindowGrid& grid, std::size_t window,
                       const StartTable& starts, std::size_t dim) {
  const auto length = static_cast<std::size_t>(axis.selected.size());
  if (axis.window < 0) {
    sets_.push_back({{0, starts.groups(dim)}});
    enter(axis, std::vector<std::int32_t>(length, 0));
    return;
  }
  const std::vector<std::vector<GroupRange>> held = held_positions(axis, grid, window, starts, dim);
  // Between two positions where a group begins or ends, all have the same groups.
  std::vector<std::int32_t> change(length + 1);
  std::vector<bool> is_border(length + 1);
  for (const std::vector<GroupRange>& ranges : held)
    for (const GroupRange& range : ranges) {
      ++change[static_cast<std::size_t>(range.first)];
      --change[static_cast<std::size_t>(range.end)];
      is_border[static_cast<std::size_t>(range.first)] = true;
      is_border[static_cast<std::size_t>(range.end)] = true;
    }
  std::vector<std::int32_t> of_position(length, -1);
  std::int32_t sets = 0, groups = 0;
  for (std::size_t p = 0; p < length; ++p) {
    groups += change[p];
    if (groups > 0) of_position[p] = is_border[p] ? sets++ : sets - 1;
  }
  sets_.resize(static_cast<std::size_t>(sets));
  for (std::size_t g = 0; g < held.size(); ++g)
    for (const GroupRange& range : held[g])
      for (std::int32_t s = of_position[static_cast<std::size_t>(range.first)];
           s <= of_position[static_cast<std::size_t>(range.end - 1)]; ++s) {
        std::vector<GroupRange>& set = sets_[static_cast<std::size_t>(s)];
        const auto group = static_cast<std::int64_t>(g);
        if (!set.empty() && set.back().end == group)
          ++set.back().end;
        else
          set.push_back({group, group + 1});
      }
  enter(axis, of_position);
}

/// From positions of the selection, which may repeat an array index, to array indices.
void AxisGroups::enter(const AxisPlacement& axis, const std::vector<std::int32_t>& of_position) {
  std::int64_t last = -1;
  for (std::int64_t p = 0; p < axis.selected.size(); ++p) last = std::max(last, axis.selected[p]);
  set_of_.assign(static_cast<std::size_t>(last + 1), -1);
  for (std::int64_t p = 0; p < axis.selected.size(); ++p) {
    const std::int64_t index = axis.selected[p];
    const std::int32_t set = of_position[static_cast<std::size_t>(p)];
    if (index == Positions::kNone || set < 0) continue;
    std::int32_t& mine = set_of_[static_cast<std::size_t>(index)];
    if (mine < 0 || mine == set) {
      mine = set;
      continue;
    }
    std::vector<GroupRange> both = sets_[static_cast<std::size_t>(mine)];
    const std::vector<GroupRange>& more = sets_[static_cast<std::size_t>(set)];
    both.insert(both.end(), more.begin(), more.end());
    merge_ranges(both);
    mine = static_cast<std::int32_t>(sets_.size());
    sets_.push_back(std::move(both));
  }
}

}  // namespace batchfs
