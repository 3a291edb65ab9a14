#include "engine/scan/sample_scan.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/scan/sweep.h"
#include "engine/view/samples/missing.h"
#include "engine/view/samples/reached.h"

namespace batchfs {

namespace {

/// Integers, booleans and times have no NaN.
bool may_miss(const Variable& variable) { return variable.cf.decoded.is_float(); }

/// Per dimension of a variable.
std::vector<const Positions*> pointers(const std::vector<Positions>& positions) {
  std::vector<const Positions*> result;
  for (const Positions& each : positions) result.push_back(&each);
  return result;
}

/// Where values of a piece are missing, seen along the dimensions that are in a window.
MissingBox missing_of(const Sweep::Piece& piece, const double* values,
                      const std::vector<bool>& in_window, bool& any) {
  const std::size_t rank = piece.axes.size();
  MissingBox box;
  std::size_t size = 1;
  for (std::size_t d = 0; d < rank; ++d) {
    box.indices.emplace_back();
    for (std::int64_t index : piece.axes[d].indices) {
      box.indices.back().push_back(piece.box.start[d] + index);
      if (!in_window[d]) break;
    }
    size *= box.indices.back().size();
  }
  box.missing.resize(size);
  const Dims strides = c_strides(piece.box.shape, 1);
  auto look = [&](auto&& self, std::size_t d, std::int64_t from, std::size_t to) -> void {
    if (d == rank) {
      if (std::isnan(values[from])) box.missing[to] = 1, any = true;
      return;
    }
    const std::vector<std::int64_t>& indices = piece.axes[d].indices;
    if (d + 1 == rank && !in_window[d]) {  // the common innermost loop
      bool found = false;
      for (std::int64_t index : indices) found |= std::isnan(values[from + index]);
      if (found) box.missing[to] = 1, any = true;
      return;
    }
    for (std::size_t i = 0; i < indices.size(); ++i)
      self(self, d + 1, from + indices[i] * strides[d],
           in_window[d] ? to * indices.size() + i : to);
  };
  look(look, 0, 0, 0);
  return box;
}

}  // namespace

ScanCost scan_cost(const View& view) {
  ScanCost cost;
  const ViewScan scan = view.scan();
  for (std::uint32_t v = 0; v < view.variables().size(); ++v) {
    const Variable& variable = *view.variables()[v];
    if (!may_miss(variable)) continue;
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
  const ViewScan scan = view.scan();
  // The marks and the index made of them; with a block order the index once more.
  const std::uint64_t index_bytes = static_cast<std::uint64_t>(scan.windows) / 8 * 3;
  if (index_bytes > engine.budget().limit() / 2)
    throw Error(ErrorCode::no_memory,
                fmt::format("missing: \"skip\" takes {} to look through the view's {} windows, and "
                            "the memory budget is {}; "
                            "give more with --memory, or take a larger stride",
                            format_size(index_bytes),
                            format_count(static_cast<std::uint64_t>(scan.windows)),
                            format_size(engine.budget().limit())));
  MissingMarks marks(scan.windows);
  const std::int64_t all = scan_cost(view).chunks;
  std::int64_t before = 0;
  for (std::uint32_t v = 0; v < view.variables().size(); ++v) {
    const Variable& variable = *view.variables()[v];
    if (!may_miss(variable)) continue;
    std::vector<const VariablePlacement*> placements;
    for (const VariablePlacement& placement : *scan.placements)
      if (placement.variable == v) placements.push_back(&placement);
    std::vector<bool> in_window(variable.dims.size());
    for (const VariablePlacement* placement : placements)
      for (std::size_t d = 0; d < in_window.size(); ++d)
        in_window[d] = placement->axes[d].window >= 0;
    const std::vector<Positions> reached = reached_positions(scan, v);
    const Sweep sweep(variable, pointers(reached));
    sweep.read(
        engine,
        [&](std::int64_t, const Sweep::Piece& piece, std::shared_ptr<const Buffer> values) {
          bool any = false;
          const MissingBox box =
              missing_of(piece, reinterpret_cast<const double*>(values->data()), in_window, any);
          if (!any) return;
          for (const VariablePlacement* placement : placements)
            mark_windows(*placement, scan.grid, box, marks);
        },
        [&](std::int64_t done) {
          if (progress) progress(before + done, all);
        });
    before += sweep.pieces();
  }
  return marks.index();
}

}  // namespace batchfs
