#include "engine/view/split/part_boxes.h"

#include <algorithm>

#include <fmt/format.h>

namespace batchfs {

namespace {

/// Does the part yield to the owner of a cell: is the gap between them taken from the part?
bool yields_to(const SplitSpec& split, const SplitPart& part, std::uint8_t owner) {
  if (owner == SplitOwners::kNone) return false;
  if (split.folds > 0) return part.part == 0 && owner == part.fold;
  if (owner == part.part) return false;
  return split.parts[part.part].rest || (!split.parts[owner].rest && owner > part.part);
}

bool is_mine(const SplitSpec& split, const SplitPart& part, std::uint8_t owner) {
  if (split.folds > 0) return (part.part == 1) == (owner == part.fold);
  return owner == part.part;
}

}  // namespace

PartBoxes::PartBoxes(const RestrictedView& view, const SplitSpec& split, const SplitPart& part)
    : axes_(split_axes(view, split)) {
  const SplitOwners owners = find_owners(view, split, axes_);
  for (const SplitAxis& axis : axes_) {
    circles_.push_back(view.windows[axis.window].wrap);
    Gap& gap = gaps_.emplace_back();
    for (const SplitSpec::Length& length : split.gap) {
      if (length.dim != axis.dim) continue;
      gap.positions = length.positions;
      if (!length.duration) continue;
      if (circles_.back())
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("{}: lengths of time do not go with \"wrap\"", length.path));
      gap.nanoseconds = length.duration->nanoseconds;
      gap.times = times_along(view, axis.dim, length.path);
      const bool descending = gap.times.size() > 1 && gap.times.back() < gap.times.front();
      for (std::size_t p = 1; p < gap.times.size(); ++p)
        if (descending ? gap.times[p] > gap.times[p - 1] : gap.times[p] < gap.times[p - 1])
          throw Error(
              ErrorCode::invalid_argument,
              fmt::format("{}: a length of time needs labels in order, and '{}' has {} after {}",
                          length.path, axis.dim,
                          position_text(view, axis.dim, static_cast<std::int64_t>(p)),
                          position_text(view, axis.dim, static_cast<std::int64_t>(p) - 1)));
    }
  }
  std::vector<bool> others, stronger;
  for (const std::uint8_t owner : owners.parts) {
    others.push_back(!is_mine(split, part, owner));
    stronger.push_back(yields_to(split, part, owner));
  }
  others_.emplace(owners.shape, others);
  stronger_.emplace(owners.shape, stronger);
}

std::array<CellSpan, 2> PartBoxes::cells(std::size_t axis, std::int64_t first,
                                         std::int64_t end) const {
  const SplitAxis& along = axes_[axis];
  const std::int64_t length = along.positions();
  const auto span = [&](std::int64_t from, std::int64_t to) {
    return CellSpan{along.cell_of(from), along.cell_of(to - 1) + 1};
  };
  if (circles_[axis]) {
    if (end - first >= length) return {span(0, length), CellSpan{}};
    const std::int64_t begin = ((first % length) + length) % length;
    end += begin - first;
    if (end <= length) return {span(begin, end), CellSpan{}};
    // Spans of cells, not of positions: one cell must not count twice.
    CellSpan behind = span(begin, length), before = span(0, end - length);
    before.end = std::min(before.end, behind.first);
    if (before.end <= before.first) before = {};
    return {behind, before};
  }
  first = std::clamp<std::int64_t>(first, 0, length - 1);
  return {span(first, std::clamp(end, first + 1, length)), CellSpan{}};
}

std::pair<std::int64_t, std::int64_t> PartBoxes::widened(std::size_t axis, std::int64_t first,
                                                         std::int64_t end) const {
  const Gap& gap = gaps_[axis];
  const std::int64_t length = axes_[axis].positions();
  if (gap.times.empty()) {
    const std::int64_t by = std::min(gap.positions, length);
    return {first - by, end + by};
  }
  const auto a =
      gap.times[static_cast<std::size_t>(std::clamp<std::int64_t>(first, 0, length - 1))];
  const auto b =
      gap.times[static_cast<std::size_t>(std::clamp<std::int64_t>(end - 1, 0, length - 1))];
  const auto begin = gap.times.begin(), behind = gap.times.end();
  if (gap.times.front() <= gap.times.back())
    return {std::lower_bound(begin, behind, a - gap.nanoseconds) - begin,
            std::upper_bound(begin, behind, b + gap.nanoseconds) - begin};
  return {std::lower_bound(begin, behind, a + gap.nanoseconds, std::greater<>()) - begin,
          std::upper_bound(begin, behind, b - gap.nanoseconds, std::greater<>()) - begin};
}

std::vector<FootprintRun> PartBoxes::runs(std::size_t axis, std::int64_t count,
                                          const FootprintAt& at) const {
  std::vector<FootprintRun> runs;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto [first, end] = at(i);
    const auto [low, high] = widened(axis, first, end);
    const auto inside = cells(axis, first, end), near = cells(axis, low, high);
    if (runs.empty() || runs.back().inside != inside || runs.back().near != near)
      runs.push_back({i, 0, inside, near});
    ++runs.back().count;
  }
  return runs;
}

std::int64_t PartBoxes::count(const CellCounts& counts, const std::vector<const FootprintRun*>& box,
                              std::array<CellSpan, 2> FootprintRun::*spans) const {
  std::int64_t sum = 0;
  std::vector<CellSpan> corner(box.size());
  for (std::size_t choice = 0; choice < std::size_t{1} << box.size(); ++choice) {
    bool empty = false;
    for (std::size_t a = 0; a < box.size(); ++a) {
      corner[a] = (box[a]->*spans)[choice >> a & 1];
      empty = empty || corner[a].end <= corner[a].first;
    }
    if (!empty) sum += counts.count(corner);
  }
  return sum;
}

PartVerdict PartBoxes::verdict(const std::vector<const FootprintRun*>& box) const {
  const std::int64_t others = count(*others_, box, &FootprintRun::inside);
  if (others == 0)
    return count(*stronger_, box, &FootprintRun::near) == 0 ? PartVerdict::sample
                                                            : PartVerdict::in_gap;
  std::int64_t all = 1;
  for (const FootprintRun* run : box) {
    std::int64_t along = 0;
    for (const CellSpan& span : run->inside) along += span.end - span.first;
    all *= along;
  }
  return others == all ? PartVerdict::outside : PartVerdict::straddling;
}

std::int64_t PartBoxes::longest_block(std::size_t axis) const {
  const SplitAxis& along = axes_[axis];
  std::int64_t longest = 0;
  for (std::size_t cell = 0; cell + 1 < along.begins.size(); ++cell)
    longest = std::max(longest, along.begins[cell + 1] - along.begins[cell]);
  return longest;
}

}  // namespace batchfs
