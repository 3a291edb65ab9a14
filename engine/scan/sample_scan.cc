#include "engine/scan/sample_scan.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/scan/sweep.h"
#include "engine/view/rows/reached.h"
#include "engine/view/samples/missing.h"

namespace batchfs {

namespace {

/// Integers, booleans and times have no NaN.
bool may_miss(const Variable& variable) { return variable.cf.decoded.is_float(); }

/// A piece's values with what it takes to interpret them.
struct PieceView {
  const Sweep::Piece& piece;
  const double* values;
  const std::vector<bool>& in_window;  // per dimension of the array
  /// Per dimension: how often the selection has each of the sweep's indices; empty: once.
  const std::vector<std::vector<std::uint32_t>>& repeats;

  std::uint32_t repeat(std::size_t d, std::size_t i) const {
    return repeats[d].empty() ? 1 : repeats[d][piece.axes[d].first + i];
  }
};

/// Where values of a piece are missing, seen along the dimensions that are in a window:
/// as bytes or, in wider elements, as counts.
template <class Element>
MissingBoxOf<Element> missing_of(const PieceView& view, bool& any) {
  constexpr bool kCounts = sizeof(Element) > 1;
  const Sweep::Piece& piece = view.piece;
  const std::size_t rank = piece.axes.size();
  MissingBoxOf<Element> box;
  std::size_t size = 1;
  for (std::size_t d = 0; d < rank; ++d) {
    box.indices.emplace_back();
    for (std::int64_t index : piece.axes[d].indices) {
      box.indices.back().push_back(piece.box.start[d] + index);
      if (!view.in_window[d]) break;
    }
    size *= box.indices.back().size();
  }
  box.missing.resize(size);
  const Dims strides = c_strides(piece.box.shape, 1);
  const auto enter = [&](std::size_t to, Element found) {
    any = true;
    if constexpr (kCounts)
      box.missing[to] += found;
    else
      box.missing[to] = 1;
  };
  auto look = [&](auto&& self, std::size_t d, std::int64_t from, std::size_t to,
                  Element times) -> void {
    if (d == rank) {
      if (std::isnan(view.values[from])) enter(to, times);
      return;
    }
    const std::vector<std::int64_t>& indices = piece.axes[d].indices;
    if (d + 1 == rank && !view.in_window[d] && (!kCounts || view.repeats[d].empty())) {
      // The common innermost loop.
      Element found = 0;
      for (std::int64_t index : indices) {
        if constexpr (kCounts)
          found += std::isnan(view.values[from + index]) ? 1 : 0;
        else
          found |= std::isnan(view.values[from + index]) ? 1 : 0;
      }
      if (found != 0) enter(to, found * times);
      return;
    }
    for (std::size_t i = 0; i < indices.size(); ++i) {
      Element here = times;
      // Dimensions of windows have their repeats in the windows.
      if constexpr (kCounts)
        if (!view.in_window[d]) here *= view.repeat(d, i);
      self(self, d + 1, from + indices[i] * strides[d],
           view.in_window[d] ? to * indices.size() + i : to, here);
    }
  };
  look(look, 0, 0, 0, 1);
  return box;
}

/// See PieceView.
std::vector<std::vector<std::uint32_t>> repeats_of(const Sweep& sweep,
                                                   const VariablePlacement& placement) {
  std::vector<std::vector<std::uint32_t>> repeats(placement.axes.size());
  for (std::size_t d = 0; d < repeats.size(); ++d) {
    const Positions& selected = placement.axes[d].selected;
    const std::vector<std::int64_t>& indices = sweep.indices(d);
    if (selected.size() == static_cast<std::int64_t>(indices.size())) continue;
    repeats[d].resize(indices.size());
    for (std::int64_t p = 0; p < selected.size(); ++p)
      if (const auto it = std::lower_bound(indices.begin(), indices.end(), selected[p]);
          it != indices.end() && *it == selected[p])
        ++repeats[d][static_cast<std::size_t>(it - indices.begin())];
  }
  return repeats;
}

/// The view's scan, limited to the placements whose missing values count.
ViewScan checked_scan(const View& view) {
  ViewScan scan = scan_of(view);
  if (scan.checked != nullptr) scan.placements = scan.checked;
  return scan;
}

std::vector<const VariablePlacement*> placements_of(const ViewScan& scan, std::uint32_t variable) {
  std::vector<const VariablePlacement*> result;
  for (const VariablePlacement& placement : *scan.placements)
    if (placement.variable == variable) result.push_back(&placement);
  return result;
}

/// The result of the scan: a bit a window, or a count where some values may be missing.
struct Missing {
  Missing(std::int64_t windows, bool counting) {
    if (counting)
      counts.emplace(windows);
    else
      marks.emplace(windows);
  }
  std::optional<MissingMarks> marks;
  std::optional<MissingCounts> counts;

  void add(const PieceView& view, const std::vector<const VariablePlacement*>& placements,
           const WindowGrid& grid) {
    bool any = false;
    if (marks) {
      const MissingBox box = missing_of<std::uint8_t>(view, any);
      for (const VariablePlacement* placement : placements)
        if (any) mark_windows(*placement, grid, box, *marks);
    } else {
      const CountedBox box = missing_of<std::uint32_t>(view, any);
      for (const VariablePlacement* placement : placements)
        if (any) count_missing(*placement, grid, box, *counts);
    }
  }
};

}  // namespace

ScanCost scan_cost(const View& view) {
  ScanCost cost;
  const ViewScan scan = checked_scan(view);
  for (std::uint32_t v = 0; v < view.variables().size(); ++v) {
    const Variable& variable = *view.variables()[v];
    if (!may_miss(variable) || placements_of(scan, v).empty()) continue;
    const std::vector<Positions> reached = reached_positions(scan, v);
    const std::int64_t chunks = touched_chunks(variable, pointers(reached));
    cost.chunks += chunks;
    cost.decoded_bytes +=
        static_cast<double>(chunks) * static_cast<double>(variable.array->chunk_bytes());
  }
  return cost;
}

SampleIndex scan_samples(Engine& engine, const View& view,
                         const std::function<void(std::int64_t done, std::int64_t all)>& progress) {
  const ViewScan scan = checked_scan(view);
  const bool counting = scan.at_most > 0;
  // The marks and the index made of them; with a block order the index once more.
  const std::uint64_t index_bytes = static_cast<std::uint64_t>(scan.windows) / 8 * 3 +
                                    (counting ? static_cast<std::uint64_t>(scan.windows) * 4 : 0);
  if (index_bytes > engine.budget().limit() / 2)
    throw Error(ErrorCode::no_memory,
                fmt::format("missing: \"skip\" takes {} to look through the view's {} windows, and "
                            "the memory budget is {}; "
                            "give more with --memory, or take a larger stride",
                            format_size(index_bytes),
                            format_count(static_cast<std::uint64_t>(scan.windows)),
                            format_size(engine.budget().limit())));
  std::optional<WindowElements> elements;
  if (counting) {
    std::vector<const VariablePlacement*> counted;
    for (const VariablePlacement& placement : *scan.placements)
      if (may_miss(*view.variables()[placement.variable])) counted.push_back(&placement);
    elements.emplace(std::move(counted), scan.grid);
  }
  Missing missing(scan.windows, counting);
  const std::int64_t all = scan_cost(view).chunks;
  std::int64_t before = 0;
  for (std::uint32_t v = 0; v < view.variables().size(); ++v) {
    const Variable& variable = *view.variables()[v];
    const std::vector<const VariablePlacement*> placements = placements_of(scan, v);
    if (!may_miss(variable) || placements.empty()) continue;
    std::vector<bool> in_window(variable.dims.size());
    for (const VariablePlacement* placement : placements)
      for (std::size_t d = 0; d < in_window.size(); ++d)
        in_window[d] = placement->axes[d].window >= 0;
    const std::vector<Positions> reached = reached_positions(scan, v);
    const Sweep sweep(variable, pointers(reached));
    const std::vector<std::vector<std::uint32_t>> repeats = repeats_of(sweep, *placements.front());
    sweep.read(
        engine,
        [&](std::int64_t, const Sweep::Piece& piece, std::shared_ptr<const Buffer> values) {
          missing.add({piece, reinterpret_cast<const double*>(values->data()), in_window, repeats},
                      placements, scan.grid);
        },
        [&](std::int64_t done) {
          if (progress) progress(before + done, all);
        });
    before += sweep.pieces();
  }
  return counting ? missing.counts->index(*elements, scan.at_most) : missing.marks->index();
}

}  // namespace batchfs
