#include "engine/view/order/chunk_groups.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace batchfs {

namespace {

/// Makes groups along an axis `span` chunks long.
void extend(ChunkGroups::Axis& axis, const std::string& dim, std::int64_t span) {
  if (span == 1) return;
  const bool uneven = !axis.bounds.empty();
  const std::int64_t most =
      std::max<std::int64_t>(1, uneven ? axis.whole() / 2 : axis.positions / 2 / axis.group);
  if (span > most)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("order.span.{}: groups of {} chunks are longer than half of the {} windows "
                    "along '{}', {} write at most {}",
                    dim, span, axis.positions, dim,
                    uneven ? fmt::format("which lie in {} chunks;", axis.whole())
                           : fmt::format("of which {} share a chunk;", axis.group),
                    most));
  axis.group *= span;
  if (!uneven) return;
  std::vector<std::int64_t> bounds;
  for (std::size_t g = 0; g + 1 < axis.bounds.size(); g += static_cast<std::size_t>(span))
    bounds.push_back(axis.bounds[g]);
  bounds.push_back(axis.positions);
  axis.bounds = std::move(bounds);
}

/// Where starts are left out, or chunks are those of another source: a group holds the starts that
/// begin in one chunk, so its size varies.
ChunkGroups::Axis restricted_axis(const WindowedVariables& view, std::size_t w,
                                  std::int64_t chunk) {
  const Positions& selected = view.selected.at(view.windows[w].name);
  ChunkGroups::Axis axis{view.grid.counts[w], 0, 1};
  std::int64_t last = -1;
  for (std::int64_t i = 0; i < axis.positions; ++i) {
    const std::int64_t start = view.grid.start(w, i);
    const std::int64_t in =
        view.by != nullptr ? view.by->number(w, start) : selected[start] / chunk;
    if (i == 0 || in != last) axis.bounds.push_back(i);
    last = in;
  }
  axis.bounds.push_back(axis.positions);
  return axis;
}

/// Groups that all have the same size need no list of their bounds.
ChunkGroups::Axis evened(ChunkGroups::Axis axis) {
  const std::int64_t size = axis.size(0);
  for (std::int64_t g = 1; g < axis.whole(); ++g)
    if (axis.size(g) != size) return axis;
  return {axis.positions, 0, size};
}

}  // namespace

std::int64_t longest_chunk(const WindowedVariables& view, const std::string& dim) {
  std::int64_t chunk = 1;
  for (const Variable* variable : view.variables)
    for (std::size_t d = 0; d < variable->dims.size(); ++d)
      if (variable->dims[d] == dim && variable->join_along(d) == nullptr)
        chunk = std::max(chunk, variable->array->grid().chunk_shape()[d]);
  return chunk;
}

ChunkGroups chunk_groups(const WindowedVariables& view,
                         const std::vector<std::pair<std::string, std::int64_t>>& span) {
  ChunkGroups groups;
  for (std::size_t w = 0; w < view.windows.size(); ++w) {
    const std::string& dim = view.windows[w].name;
    const Positions& selected = view.selected.at(dim);
    const std::int64_t stride = view.grid.strides[w], count = view.grid.counts[w];
    const std::int64_t chunk = longest_chunk(view, dim);
    ChunkGroups::Axis axis{count, 0, std::max<std::int64_t>(1, chunk / stride)};
    const bool restricted = view.grid.restricted(w) != nullptr || view.by != nullptr;
    if (restricted) {
      axis = restricted_axis(view, w, chunk);
    } else {
      if (chunk % stride == 0 && selected.is_range()) {
        const std::int64_t at = selected[view.grid.first[w] * stride] % chunk;
        axis.lead = std::min(((chunk - at) % chunk + stride - 1) / stride, count);
      }
      if (axis.whole() == 0) axis = {count, 0, count};  // no border of a chunk on either side
    }
    for (const auto& [along, chunks] : span)
      if (along == dim) extend(axis, dim, chunks);
    groups.axes.push_back(restricted ? evened(std::move(axis)) : std::move(axis));
  }
  return groups;
}

std::int64_t default_mixing(const WindowedVariables& view,
                            const std::function<double(const std::string& dim)>& positions) {
  constexpr double kBytes = 128 << 20;
  double bytes = 0;
  for (const Variable* variable : view.variables) {
    if (variable->part > 0) continue;  // windows lie in one part, or two
    double chunks = 1;
    for (std::size_t d = 0; d < variable->dims.size(); ++d) {
      const std::string& dim = variable->dims[d];
      const std::int64_t chunk =
          std::max<std::int64_t>(1, variable->array->grid().chunk_shape()[d]);
      const double span = window_number(view.windows, dim) >= 0
                              ? positions(dim)
                              : static_cast<double>(view.selected.at(dim).size());
      chunks *= std::ceil(span / static_cast<double>(chunk));
    }
    bytes += chunks * static_cast<double>(variable->array->chunk_bytes());
  }
  return static_cast<std::int64_t>(std::clamp(kBytes / std::max(bytes, 1.0), 1.0, 1024.0));
}

std::int64_t default_mixing(const WindowedVariables& view, const ChunkGroups& groups) {
  return default_mixing(view, [&](const std::string& dim) {
    const auto w = static_cast<std::size_t>(window_number(view.windows, dim));
    if (view.grid.restricted(w) == nullptr && view.by == nullptr)
      return static_cast<double>(groups.axes[w].group * view.grid.strides[w]);
    const std::int64_t first = view.grid.start(w, 0),
                       last = view.grid.start(w, groups.axes[w].size(0) - 1);
    return static_cast<double>(std::max(longest_chunk(view, dim), last - first));
  });
}

}  // namespace batchfs
