#include "engine/view/restrictions.h"

#include <memory>

#include <fmt/format.h>

#include "engine/base/counted.h"
#include "engine/base/strings.h"
#include "engine/view/time_axis.h"

namespace batchfs {

namespace {

/// Keeps the starts along a dimension whose position `keep` accepts.
template <class Keep>
void keep_starts(WindowGrid& grid, std::size_t w, Keep&& keep) {
  auto left = std::make_shared<std::vector<std::int64_t>>();
  for (std::int64_t i = 0; i < grid.counts[w]; ++i)
    if (const std::int64_t number = grid.number(w, i); keep(number * grid.strides[w]))
      left->push_back(number);
  const auto count = static_cast<std::int64_t>(left->size());
  if (count == grid.counts[w]) return;
  grid.allowed.resize(grid.counts.size());
  grid.counts[w] = count;
  grid.allowed[w] = std::move(left);
}

/// Counts of the labels that do not follow the one before them by `step`.
MarkedCounts gaps_of(const TimeAxis& times, const Duration& step, bool circle) {
  std::vector<bool> marked(static_cast<std::size_t>(times.size()));
  for (std::int64_t i = circle ? 0 : 1; i < times.size(); ++i)
    marked[static_cast<std::size_t>(i)] =
        !times.follows(i == 0 ? times.size() - 1 : i - 1, i, step);
  return MarkedCounts(marked, circle);
}

bool crosses(const MarkedCounts& gaps, const Reach& reach, std::int64_t start) {
  return gaps.count(start + reach.begin + 1, start + reach.end) > 0;
}

/// A warning is not worth reading a longer coordinate.
constexpr std::int64_t kMaxChecked = 8 << 20;

std::string plural_windows(std::int64_t count) { return counted(count, "window"); }

void restrict_spacing(const RestrictedView& view, WindowGrid& grid) {
  for (const SampleSpec::Spacing& spacing : view.spec.spacing) {
    const int number = window_number(view.windows, spacing.dim);
    if (number < 0)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: '{}' is no dimension of \"window\"", spacing.path, spacing.dim));
    const auto w = static_cast<std::size_t>(number);
    const TimeAxis times(view.dataset, spacing.dim, view.selected.at(spacing.dim), spacing.path);
    const std::int64_t before = grid.counts[w];
    const MarkedCounts gaps = gaps_of(times, spacing.step, view.windows[w].wrap);
    if (gaps.all() == 0) continue;
    keep_starts(grid, w,
                [&](std::int64_t start) { return !crosses(gaps, view.reaches[w], start); });
    if (grid.counts[w] > 0) continue;
    const std::int64_t at = times.first_irregular(spacing.step).value_or(0);
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{}: no sample is left: each of {} along '{}' reaches across labels that are "
                    "not {} apart, as {} and {}",
                    spacing.path, plural_windows(before), spacing.dim,
                    duration_text(spacing.step), times.label(at > 0 ? at - 1 : times.size() - 1),
                    times.label(at)));
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
  if (!view.spec.spacing.empty()) {
    restrict_spacing(view, grid);
    enter("spacing");
  }
  return dropped;
}

std::vector<std::string> gap_warnings(const RestrictedView& view, const WindowGrid& grid) {
  std::vector<std::string> warnings;
  for (std::size_t w = 0; w < view.windows.size(); ++w) {
    const std::string& dim = view.windows[w].name;
    const Reach& reach = view.reaches[w];
    if (view.windows[w].wrap || reach.end - reach.begin < 2 || view.spec.spacing_along(dim) ||
        !has_time_axis(view.dataset, dim) || view.dataset.dim_size(dim) > kMaxChecked)
      continue;
    const TimeAxis times(view.dataset, dim, view.selected.at(dim), dim);
    const std::optional<Duration> step = times.common_step();
    const std::string advice = fmt::format(
        "; \"samples\": {{\"spacing\": {{\"{}\": \"{}\"}}}} leaves them out", dim,
        step ? duration_text(*step) : "6h");
    if (!step) {
      if (times.size() > 2)
        warnings.push_back(fmt::format("{}: the times have no regular step{}", dim, advice));
      continue;
    }
    const MarkedCounts gaps = gaps_of(times, *step, false);
    if (gaps.all() == 0) continue;
    std::int64_t across = 0;
    for (std::int64_t i = 0; i < grid.counts[w]; ++i)
      across += crosses(gaps, reach, grid.start(w, i)) ? 1 : 0;
    if (across == 0) continue;
    warnings.push_back(fmt::format(
        "{}: {}: {} across one{}", dim, counted(gaps.all(), "gap"),
        counted(across * (count_windows(grid) / grid.counts[w]), "sample reaches",
                "samples reach"),
        advice));
  }
  return warnings;
}

}  // namespace batchfs
