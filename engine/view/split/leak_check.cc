#include "engine/view/split/leak_check.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "engine/dataset/labels.h"
#include "engine/view/axes.h"
#include "engine/view/samples/missing.h"
#include "engine/view/split/part_boxes.h"

namespace batchfs {

namespace {

constexpr std::size_t kMaxPieces = std::size_t{1} << 26;

/// Positions along an axis: first, end.
struct Stretch {
  std::int64_t first = 0, end = 0;
};
/// The stretches of a footprint: the second is empty unless it passes over the end of a circle.
using Stretches = std::array<Stretch, 2>;

Stretches inside(std::int64_t first, std::int64_t end, std::int64_t length, bool circle) {
  if (!circle) return {Stretch{std::max<std::int64_t>(first, 0), std::min(end, length)}, {}};
  if (end - first >= length) return {Stretch{0, length}, {}};
  const std::int64_t begin = ((first % length) + length) % length;
  end += begin - first;
  if (end <= length) return {Stretch{begin, end}, {}};
  return {Stretch{begin, length}, Stretch{0, end - length}};
}

/// The footprints of the samples of one part, along the dimensions of the split.
struct PartFootprints {
  struct Axis {
    std::vector<Stretches> own, near;  // of each start, without and with the gap
  };
  std::vector<Axis> axes;
  std::vector<bool> sampled;  // by start along each axis, row-major
};

/// The dimensions of a split.
struct LeakAxis {
  std::string dim;
  std::int64_t length = 0;
  bool circle = false;
  std::vector<std::optional<__int128>> times;  // empty: it has none
  std::vector<std::int64_t> cuts;              // where footprints begin and end
  std::size_t pieces() const { return cuts.size() - 1; }
  std::size_t piece(std::int64_t position) const {
    return static_cast<std::size_t>(std::lower_bound(cuts.begin(), cuts.end(), position) -
                                    cuts.begin());
  }
};

/// The first position and the end of the tensors' footprint of the sample at a start.
std::pair<std::int64_t, std::int64_t> taken(const std::vector<VariablePlacement>& placements,
                                            std::size_t w, std::int64_t start) {
  std::int64_t first = INT64_MAX, end = INT64_MIN;
  for (const VariablePlacement& placement : placements)
    for (const AxisPlacement& axis : placement.axes) {
      if (axis.window != static_cast<int>(w)) continue;
      for (std::size_t o = 0; o < axis.offsets.size(); ++o) {
        const std::int64_t at = axis.first(o, start) / axis.scale;
        first = std::min(first, at);
        end = std::max(end, at + axis.size / axis.scale);
      }
    }
  return first < end ? std::pair(first, end) : std::pair(start, start + 1);
}

/// Which starts along the axes have a sample.
std::vector<bool> sampled_starts(const ViewScan& scan, const std::vector<SplitAxis>& axes) {
  std::size_t count = 1;
  for (const SplitAxis& axis : axes)
    count *= static_cast<std::size_t>(scan.grid.counts[axis.window]);
  if (scan.chosen == nullptr || axes.size() == 1) return std::vector<bool>(count, true);
  std::vector<bool> sampled(count);
  const auto words = scan.chosen->words();
  for (std::size_t i = 0; i < words.size(); ++i)
    for (std::uint64_t bits = words[i]; bits != 0; bits &= bits - 1) {
      std::int64_t window = static_cast<std::int64_t>(i) * 64 + std::countr_zero(bits);
      std::size_t start = 0, stride = 1, a = axes.size();
      for (std::size_t w = scan.grid.counts.size(); w-- > 0;) {
        if (a > 0 && axes[a - 1].window == w) {
          start += stride * static_cast<std::size_t>(window % scan.grid.counts[w]);
          stride *= static_cast<std::size_t>(scan.grid.counts[w]);
          --a;
        }
        window /= scan.grid.counts[w];
      }
      sampled[start] = true;
    }
  return sampled;
}

PartFootprints footprints_of(const View& view, std::vector<LeakAxis>& axes) {
  PartFootprints part;
  visit_windows(view, [&](const RestrictedView& restricted, const ViewScan& scan) {
    const PartBoxes boxes(restricted, *view.spec().split, view.spec().part);
    const bool first_part = axes.empty();
    for (std::size_t a = 0; a < boxes.axes().size(); ++a) {
      const SplitAxis& axis = boxes.axes()[a];
      const WindowDim& window = restricted.windows[axis.window];
      if (first_part) {
        axes.push_back({axis.dim, axis.positions(), window.wrap, {}, {0, axis.positions()}});
        if (restricted.dataset.index_of(axis.dim) != nullptr)
          if (const auto times = TimeAxis::of(restricted.dataset.index(axis.dim)))
            for (std::int64_t p = 0; p < axis.positions(); ++p)
              axes.back().times.push_back(times->nanoseconds(restricted.selected.at(axis.dim)[p]));
      }
      PartFootprints::Axis& own = part.axes.emplace_back();
      for (std::int64_t i = 0; i < scan.grid.counts[axis.window]; ++i) {
        const auto [first, end] =
            taken(*scan.placements, axis.window, scan.grid.start(axis.window, i));
        const auto [low, high] = boxes.widened(a, first, end);
        own.own.push_back(inside(first, end, axis.positions(), window.wrap));
        own.near.push_back(inside(low, high, axis.positions(), window.wrap));
        for (const auto* stretches : {&own.own.back(), &own.near.back()})
          for (const Stretch& stretch : *stretches) {
            axes[a].cuts.push_back(stretch.first);
            axes[a].cuts.push_back(stretch.end);
          }
      }
    }
    part.sampled = sampled_starts(scan, boxes.axes());
  });
  return part;
}

/// Which pieces, cut at every begin and end of a footprint, samples of a part cover.
class Coverage {
 public:
  explicit Coverage(const std::vector<LeakAxis>& axes) : axes_(axes), strides_(axes.size(), 1) {
    for (std::size_t a = axes.size(); a-- > 1;)
      strides_[a - 1] = strides_[a] * (axes[a].pieces() + 1);
  }
  std::size_t size() const { return strides_[0] * (axes_[0].pieces() + 1); }
  std::size_t stride(std::size_t axis) const { return strides_[axis]; }

  /// Along `own_axis` without the gap, along the others with it; `with_gap` false: without it
  /// everywhere. For each piece, in an array with one more along each axis.
  std::vector<bool> of(const PartFootprints& part, std::size_t own_axis, bool with_gap) const {
    std::vector<std::int32_t> change(size());
    std::vector<std::size_t> starts(axes_.size());
    for (std::size_t number = 0; number < part.sampled.size(); ++number) {
      if (!part.sampled[number]) continue;
      std::size_t rest = number;
      for (std::size_t a = axes_.size(); a-- > 0;) {
        starts[a] = rest % part.axes[a].own.size();
        rest /= part.axes[a].own.size();
      }
      add(part, starts, own_axis, with_gap, 0, 0, 1, change);
    }
    for (std::size_t a = 0; a < axes_.size(); ++a)
      for (std::size_t i = strides_[a]; i < change.size(); ++i)
        if (i / strides_[a] % (axes_[a].pieces() + 1) != 0) change[i] += change[i - strides_[a]];
    std::vector<bool> covered(change.size());
    for (std::size_t i = 0; i < change.size(); ++i) covered[i] = change[i] > 0;
    return covered;
  }

 private:
  /// Adds the corners of a box to `change`.
  void add(const PartFootprints& part, const std::vector<std::size_t>& starts, std::size_t own_axis,
           bool with_gap, std::size_t a, std::size_t at, std::int32_t sign,
           std::vector<std::int32_t>& change) const {
    if (a == axes_.size()) {
      change[at] += sign;
      return;
    }
    const bool own = !with_gap || a == own_axis;
    for (const Stretch& stretch : (own ? part.axes[a].own : part.axes[a].near)[starts[a]]) {
      if (stretch.end <= stretch.first) continue;
      add(part, starts, own_axis, with_gap, a + 1, at + axes_[a].piece(stretch.first) * strides_[a],
          sign, change);
      add(part, starts, own_axis, with_gap, a + 1, at + axes_[a].piece(stretch.end) * strides_[a],
          -sign, change);
    }
  }

  const std::vector<LeakAxis>& axes_;
  std::vector<std::size_t> strides_;
};

std::string time_text(__int128 nanoseconds) {
  constexpr std::pair<const char*, std::int64_t> kUnits[] = {{"d", INT64_C(86'400'000'000'000)},
                                                             {"h", INT64_C(3'600'000'000'000)},
                                                             {"min", INT64_C(60'000'000'000)},
                                                             {"s", 1'000'000'000},
                                                             {"ns", 1}};
  std::string text;
  for (const auto& [unit, length] : kUnits) {
    if (const auto count = static_cast<std::int64_t>(nanoseconds / length))
      text += fmt::format("{}{}{}", text.empty() ? "" : " ", count, unit);
    nanoseconds %= length;
  }
  return text.empty() ? "0h" : text;
}

/// The nearest positions of two parts along an axis.
struct Nearest {
  std::int64_t positions = INT64_MAX;
  std::optional<__int128> time;

  void include(const LeakAxis& axis, std::int64_t from, std::int64_t to) {
    positions = std::min(positions, to - from);
    if (axis.times.empty()) return;
    const auto a = axis.times[static_cast<std::size_t>(from % axis.length)],
               b = axis.times[static_cast<std::size_t>(to % axis.length)];
    if (!a || !b) return;
    const __int128 distance = *a < *b ? *b - *a : *a - *b;
    if (!time || distance < *time) time = distance;
  }
};

}  // namespace

LeakCheck check_leaks(const std::vector<std::shared_ptr<const View>>& parts) {
  LeakCheck check;
  std::vector<LeakAxis> axes;
  std::vector<PartFootprints> footprints;
  for (const auto& part : parts) footprints.push_back(footprints_of(*part, axes));
  std::size_t pieces = 1;
  for (LeakAxis& axis : axes) {
    std::sort(axis.cuts.begin(), axis.cuts.end());
    axis.cuts.erase(std::unique(axis.cuts.begin(), axis.cuts.end()), axis.cuts.end());
    if (__builtin_mul_overflow(pieces, axis.cuts.size(), &pieces) || pieces > kMaxPieces) {
      check.made = false;
      return check;
    }
  }
  const Coverage coverage(axes);
  // The part of each piece, from 1; that of the last part where several cover it.
  std::vector<std::uint8_t> owners(coverage.size());
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const std::vector<bool> covered = coverage.of(footprints[p], 0, false);
    for (std::size_t i = 0; i < covered.size(); ++i) {
      if (!covered[i]) continue;
      if (owners[i] != 0) {
        std::int64_t positions = 1;
        for (std::size_t a = 0; a < axes.size(); ++a) {
          const std::size_t at = i / coverage.stride(a) % axes[a].cuts.size();
          positions *= axes[a].cuts[at + 1] - axes[a].cuts[at];
        }
        check.shared += positions;
      }
      owners[i] = static_cast<std::uint8_t>(p + 1);
    }
  }
  std::map<std::pair<std::size_t, std::size_t>, std::vector<Nearest>> nearest;  // by parts
  for (std::size_t p = 0; p < parts.size(); ++p)
    for (std::size_t a = 0; a < axes.size(); ++a) {
      const LeakAxis& axis = axes[a];
      const std::vector<bool> mine = coverage.of(footprints[p], a, true);
      const std::size_t stride = coverage.stride(a), along = axis.cuts.size();
      std::vector<std::int64_t> last(parts.size() + 1);  // position after the last of each part
      for (std::size_t line = 0; line < owners.size(); ++line) {
        if (line / stride % along != 0) continue;
        std::fill(last.begin(), last.end(), -1);
        std::int64_t last_mine = -1;
        const auto meet = [&](std::size_t q, std::int64_t from, std::int64_t to) {
          auto& found = nearest[{std::min(p, q), std::max(p, q)}];
          found.resize(axes.size());
          found[a].include(axis, from, to);
        };
        for (std::size_t i = 0; i < axis.pieces() * (axis.circle ? 2 : 1); ++i) {
          const std::size_t piece = i % axis.pieces(), at = line + piece * stride;
          const std::int64_t turn = i < axis.pieces() ? 0 : axis.length;
          const std::int64_t first = axis.cuts[piece] + turn, end = axis.cuts[piece + 1] + turn;
          const std::size_t owner = owners[at];
          const bool other = owner != 0 && owner != p + 1;
          if (other && mine[at]) meet(owner - 1, first, first);
          if (other && last_mine >= 0) meet(owner - 1, last_mine, first);
          if (mine[at])
            for (std::size_t q = 0; q < parts.size(); ++q)
              if (q != p && last[q] >= 0) meet(q, last[q], first);
          if (mine[at]) last_mine = end - 1;
          if (owner != 0) last[owner - 1] = end - 1;
        }
      }
    }
  for (const auto& [pair, found] : nearest)
    for (std::size_t a = 0; a < axes.size(); ++a) {
      if (found[a].positions == INT64_MAX) continue;
      check.distances.push_back(
          {parts[pair.first]->spec().part.name, parts[pair.second]->spec().part.name, axes[a].dim,
           found[a].positions, found[a].time ? time_text(*found[a].time) : ""});
    }
  return check;
}

}  // namespace batchfs
