#include "engine/dataset/joined/nested_cells.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/dataset/positions.h"

namespace batchfs {

namespace {

constexpr long double kTolerance = 1e-3L;  // of a step

Error failure(const std::string& why) { return Error(ErrorCode::invalid_argument, why); }

/// `value`, on a circle in the turn that begins at `from`.
long double in_turn(const NestedGrids& grids, long double value, long double from) {
  if (!grids.period) return value;
  return value - *grids.period * std::floor((value - from) / *grids.period);
}

}  // namespace

std::vector<std::int64_t> finer_cells(const NestedGrids& grids, std::int64_t ratio,
                                      long double later) {
  const std::vector<long double>&anchor = grids.anchor, &own = grids.own;
  const auto count = static_cast<std::int64_t>(anchor.size());
  if (count < 2)
    throw failure(fmt::format("{} has no step: a ratio needs two labels", grids.anchor_name));
  const long double base = anchor.front();
  const long double step = (anchor.back() - base) / static_cast<long double>(count - 1);
  for (std::int64_t i = 0; i < count; ++i)
    if (!(std::fabs(anchor[static_cast<std::size_t>(i)] - base -
                    static_cast<long double>(i) * step) <= kTolerance * std::fabs(step)))
      throw failure(fmt::format("{} is not evenly spaced at position {}, which a ratio needs",
                                grids.anchor_name, i));
  const long double fine = step / static_cast<long double>(ratio);
  const long double slack = kTolerance * std::fabs(fine);
  const long double first =
      (grids.begins ? 0 : -static_cast<long double>(ratio - 1) / 2 * fine) + later;
  std::vector<std::int64_t> found(static_cast<std::size_t>(count * ratio), Positions::kNone);
  if (own.empty()) return found;
  const long double low = own.front() - slack, high = own.back() + slack;
  std::vector<long double> wanted(static_cast<std::size_t>(ratio));
  for (std::int64_t i = 0; i < count; ++i) {
    const long double label = anchor[static_cast<std::size_t>(i)];
    for (std::int64_t j = 0; j < ratio; ++j)
      wanted[static_cast<std::size_t>(j)] =
          in_turn(grids, label + first + static_cast<long double>(j) * fine, low);
    if (std::any_of(wanted.begin(), wanted.end(),
                    [&](long double each) { return each < low || each > high; }))
      continue;  // not, or not all, of the source
    for (std::int64_t j = 0; j < ratio; ++j) {
      const long double each = wanted[static_cast<std::size_t>(j)];
      const auto next = std::lower_bound(own.begin(), own.end(), each - slack);
      if (next == own.end() || *next > each + slack)
        throw failure(fmt::format(
            "the grids do not nest: in the cell of {} at position {}, {} from its label, {} has "
            "no label",
            grids.anchor_name, i, static_cast<double>(first + static_cast<long double>(j) * fine),
            grids.own_name));
      found[static_cast<std::size_t>(i * ratio + j)] =
          grids.own_positions[static_cast<std::size_t>(next - own.begin())];
    }
  }
  return found;
}

std::vector<std::int64_t> coarser_cells(const NestedGrids& grids, std::int64_t ratio,
                                        long double later) {
  const std::vector<long double>& own = grids.own;
  long double step = INFINITY;
  for (std::size_t i = 1; i < own.size(); ++i) step = std::min(step, own[i] - own[i - 1]);
  if (!std::isfinite(step))
    throw failure(fmt::format("{} has no step: a ratio needs two labels", grids.own_name));
  const long double fine = step / static_cast<long double>(ratio);
  // From the label of a cell to that of the first in it.
  const long double first = grids.begins ? 0 : -static_cast<long double>(ratio - 1) / 2 * fine;
  const long double low = own.front() + first - kTolerance * fine;
  std::vector<std::int64_t> found(grids.anchor.size(), Positions::kNone);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const long double wanted = in_turn(grids, grids.anchor[i] + later, low);
    if (!(wanted >= low)) continue;
    const auto cell =
        std::upper_bound(own.begin(), own.end(), wanted - first + kTolerance * fine) - 1;
    const long double steps = (wanted - *cell - first) / fine;
    const long double number = std::round(steps);
    if (steps >= static_cast<long double>(ratio) - kTolerance) continue;  // after it, or in a gap
    if (std::fabs(steps - number) > kTolerance)
      throw failure(
          fmt::format("the grids do not nest: {} at position {} is not a cell of {} in that of {} "
                      "at position {}: "
                      "it lies {} behind the first of them, where they are {} apart",
                      grids.anchor_name, i, ratio, grids.own_name,
                      grids.own_positions[static_cast<std::size_t>(cell - own.begin())],
                      static_cast<double>(wanted - *cell - first), static_cast<double>(fine)));
    found[i] = grids.own_positions[static_cast<std::size_t>(cell - own.begin())];
  }
  return found;
}

}  // namespace batchfs
