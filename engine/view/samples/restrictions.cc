#include "engine/view/samples/restrictions.h"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "engine/base/counted.h"
#include "engine/base/json.h"
#include "engine/dataset/labels.h"
#include "engine/view/samples/where.h"
#include "engine/view/view_limits.h"

namespace batchfs {

namespace {

/// Keeps the starts along a dimension whose position `keep` accepts. `path`: of the restriction.
template <class Keep>
void keep_starts(const Dataset& dataset, const std::string& path, WindowGrid& grid, std::size_t w,
                 Keep&& keep) {
  const std::int64_t count = grid.counts[w];
  std::int64_t first = 0;  // that is left out
  while (first < count && keep(grid.number(w, first) * grid.strides[w])) ++first;
  if (first == count) return;
  GrowingStarts left(dataset, path);
  for (std::int64_t i = 0; i < first; ++i) left.push_back(grid.number(w, i));
  for (std::int64_t i = first + 1; i < count; ++i)
    if (const std::int64_t number = grid.number(w, i); keep(number * grid.strides[w]))
      left.push_back(number);
  grid.keep(w, left.take());
}

/// Counts of the labels that do not follow the one before them by `step`.
MarkedCounts gaps_of(const TimeSteps& times, const Duration& step, bool circle) {
  std::vector<bool> marked(static_cast<std::size_t>(times.size()));
  for (std::int64_t i = circle ? 0 : 1; i < times.size(); ++i)
    marked[static_cast<std::size_t>(i)] =
        !times.follows(i == 0 ? times.size() - 1 : i - 1, i, step);
  return MarkedCounts(marked, circle);
}

/// Does the footprint reach across a gap?
bool crosses(const MarkedCounts& gaps, const Reach& reach, std::int64_t start) {
  const auto [begin, end] = reach.footprint(start);
  return gaps.count(begin + 1, end) > 0;
}

/// Does a gap shift values of the sample? Windows that begin at labels are where they should be,
/// whatever lies before them.
bool is_shifted(const MarkedCounts& gaps, const Reach& reach, std::int64_t start) {
  if (gaps.count(start + std::min<std::int64_t>(reach.begin, 0) + 1,
                 start + std::max<std::int64_t>(reach.end, 1)) > 0)
    return true;
  for (const Reach::Labelled& each : reach.labelled)
    for (std::size_t o = 0; o < each.labels->size(); ++o) {
      const std::int64_t first = each.labels->first(o, start);
      if (gaps.count(first + 1, first + reach.size) > 0) return true;
    }
  return false;
}

/// A warning is not worth reading a longer coordinate.
constexpr std::int64_t kMaxChecked = 8 << 20;

/// The number of the window dimension that a restriction names.
std::size_t window_of(const RestrictedView& view, const std::string& dim, const std::string& path) {
  const int number = window_number(view.windows, dim);
  if (number < 0) {
    std::vector<std::string> names;
    for (const WindowDim& window : view.windows) names.push_back(window.name);
    const std::string near = did_you_mean(dim, names);
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{}: '{}' is not a dimension of \"window\"{}", path, dim,
                    near.empty() ? "; \"select\" chooses positions along the others" : near));
  }
  return static_cast<std::size_t>(number);
}

/// The error when a restriction leaves no start.
Error nothing_left(const std::string& path, std::int64_t before, const std::string& why) {
  return Error(ErrorCode::invalid_argument, fmt::format("{}: no sample is left: of {} {}", path,
                                                        counted(before, "window"), why));
}

void restrict_labels(const RestrictedView& view, const std::string& restriction, WindowGrid& grid) {
  for (std::size_t w = 0; w < view.windows.size(); ++w) {
    const std::int64_t length = view.selected.at(view.windows[w].name).size();
    const std::int64_t size = view.windows[w].padded ? 1 : view.windows[w].size;
    for (const Reach::Labelled& each : view.reaches[w].labelled) {
      if (each.restriction != restriction) continue;
      const LabelOffsets& labels = *each.labels;
      const std::int64_t before = grid.counts[w], start = grid.start(w, before / 2);
      const auto lacking = [&](std::int64_t from) {  // labels.size(): none
        std::size_t o = 0;
        for (; o < labels.size(); ++o)
          if (const std::int64_t first = labels.first(o, from); first < 0 || first + size > length)
            break;
        return o;
      };
      keep_starts(view.dataset, each.path, grid, w,
                  [&](std::int64_t from) { return lacking(from) == labels.size(); });
      if (grid.counts[w] == 0)
        throw nothing_left(
            each.path, before,
            fmt::format(
                "along '{}' none has its labels: there is {} {} after {}", view.windows[w].name,
                size == 1 ? "no label" : fmt::format("no window of {}", size),
                duration_text(labels.durations()[lacking(start)]), labels.times().label(start)));
    }
  }
}

/// Leaves out windows for which another source has nothing.
void restrict_joined(const RestrictedView& view, WindowGrid& grid) {
  for (std::size_t w = 0; w < view.windows.size(); ++w)
    for (const Reach::Lacking& each : view.reaches[w].lacking) {
      const std::int64_t before = grid.counts[w];
      keep_starts(view.dataset, each.path, grid, w,
                  [&](std::int64_t start) { return !each.touches(start, view.windows[w].size); });
      if (grid.counts[w] == 0)
        throw nothing_left(
            each.path, before,
            fmt::format("along '{}' each needs labels that '{}' lacks: it has {} of {}; "
                        "\"missing\": \"pad\" keeps them",
                        view.windows[w].name, each.source,
                        view.selected.at(view.windows[w].name).size() - each.missing->all(),
                        view.selected.at(view.windows[w].name).size()));
    }
}

void restrict_spacing(const RestrictedView& view, WindowGrid& grid) {
  for (const SampleSpec::Spacing& spacing : view.spec.spacing) {
    const std::size_t w = window_of(view, spacing.dim, spacing.path);
    const TimeSteps& times = *view.times.along(spacing.dim, spacing.path);
    const std::int64_t before = grid.counts[w];
    const MarkedCounts gaps = gaps_of(times, spacing.step, view.windows[w].wrap);
    if (gaps.all() == 0) continue;
    keep_starts(view.dataset, spacing.path, grid, w,
                [&](std::int64_t start) { return !crosses(gaps, view.reaches[w], start); });
    if (grid.counts[w] > 0) continue;
    const std::int64_t at = times.first_irregular(spacing.step).value_or(0);
    throw nothing_left(
        spacing.path, before,
        fmt::format("along '{}' each reaches across labels that are not {} apart, as {} and {}",
                    spacing.dim, duration_text(spacing.step),
                    times.label(at > 0 ? at - 1 : times.size() - 1), times.label(at)));
  }
}

void restrict_where(const RestrictedView& view, WindowGrid& grid) {
  for (const SampleSpec::Where& where : view.spec.where) {
    const std::size_t w = window_of(view, where.dim, where.path);
    const Positions& selected = view.selected.at(where.dim);
    check_restricted_length(view.dataset, where.dim, where.path);
    const std::vector<bool> rejected = rejected_positions(where, view.dataset, selected);
    const std::int64_t before = grid.counts[w], first = grid.start(w, 0);
    if (where.footprint) {
      const MarkedCounts counts(rejected, view.windows[w].wrap);
      keep_starts(view.dataset, where.path, grid, w, [&](std::int64_t start) {
        const auto [begin, end] = view.reaches[w].footprint(start);
        return counts.count(begin, end) == 0;
      });
    } else {
      keep_starts(view.dataset, where.path, grid, w,
                  [&](std::int64_t start) { return !rejected[static_cast<std::size_t>(start)]; });
    }
    if (grid.counts[w] > 0) continue;
    const bool labelled = view.dataset.index_of(where.dim) != nullptr;
    throw nothing_left(where.path, before,
                       fmt::format("along '{}' none {} is like this{}", where.dim,
                                   where.footprint ? "with its footprint" : "with its start",
                                   labelled ? fmt::format("; the first begins at {}",
                                                          label_text(view.dataset.index(where.dim),
                                                                     selected[first]))
                                            : ""));
  }
}

}  // namespace

std::int64_t count_windows(const WindowGrid& grid) {
  std::int64_t count = 1;
  for (const std::int64_t along : grid.counts) count *= along;
  return count;
}

Dropped restrict_windows(const RestrictedView& view, WindowGrid& grid) {
  Dropped dropped;
  std::int64_t before = count_windows(grid);
  const auto enter = [&](const char* name) {
    const std::int64_t left = count_windows(grid);
    dropped.emplace_back(name, before - left);
    before = left;
  };
  if (std::any_of(view.reaches.begin(), view.reaches.end(),
                  [](const Reach& reach) { return !reach.lacking.empty(); })) {
    restrict_joined(view, grid);
    enter("join");
  }
  for (const char* name : {"offsets", "reserve"}) {
    const bool asked =
        std::any_of(view.reaches.begin(), view.reaches.end(), [&](const Reach& reach) {
          return std::any_of(reach.labelled.begin(), reach.labelled.end(),
                             [&](const Reach::Labelled& each) { return each.restriction == name; });
        });
    if (!asked) continue;
    restrict_labels(view, name, grid);
    enter(name);
  }
  if (!view.spec.spacing.empty()) {
    restrict_spacing(view, grid);
    enter("spacing");
  }
  if (!view.spec.where.empty()) {
    restrict_where(view, grid);
    enter("where");
  }
  return dropped;
}

std::vector<std::string> gap_warnings(const RestrictedView& view, const WindowGrid& grid) {
  std::vector<std::string> warnings;
  for (std::size_t w = 0; w < view.windows.size(); ++w) {
    const std::string& dim = view.windows[w].name;
    const Reach& reach = view.reaches[w];
    if (view.windows[w].wrap || view.spec.spacing_along(dim) || !has_times(view.dataset, dim) ||
        view.dataset.dim_size(dim) > kMaxChecked)
      continue;
    const bool is_short =
        std::max<std::int64_t>(reach.end, 1) - std::min<std::int64_t>(reach.begin, 0) < 2 &&
        reach.size < 2;
    if (is_short) continue;
    const TimeSteps& times = *view.times.along(dim, dim);
    const std::optional<Duration> step = times.common_step();
    if (!step) {
      if (times.size() > 2)
        warnings.push_back(fmt::format(
            "{}: the times have no common step: samples of one size cover different times", dim));
      continue;
    }
    const MarkedCounts gaps = gaps_of(times, *step, false);
    if (gaps.all() == 0) continue;
    std::int64_t across = 0;
    for (std::int64_t i = 0; i < grid.counts[w]; ++i)
      across += is_shifted(gaps, reach, grid.start(w, i)) ? 1 : 0;
    if (across == 0) continue;
    warnings.push_back(fmt::format(
        "{}: {}: {} across one; \"samples\": {{\"spacing\": {{\"{}\": \"{}\"}}}} leaves them out",
        dim, counted(gaps.all(), "gap"),
        counted(across * (count_windows(grid) / grid.counts[w]), "sample reaches", "samples reach"),
        dim, duration_text(*step)));
  }
  return warnings;
}

}  // namespace batchfs
