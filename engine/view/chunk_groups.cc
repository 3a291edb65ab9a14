#include "engine/view/chunk_groups.h"

#include <algorithm>

#include <fmt/format.h>

namespace batchfs {

namespace {

/// Makes groups along an axis `span` chunks long.
void extend(ChunkGroups::Axis& axis, const std::string& dim, std::int64_t span) {
  if (span == 1) return;
  const std::int64_t most = std::max<std::int64_t>(1, axis.positions / 2 / axis.group);
  if (span > most)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("order.span.{}: groups of {} chunks are longer than half of the {} "
                            "windows along '{}', of which {} share a chunk; write at most {}",
                            dim, span, axis.positions, dim, axis.group, most));
  axis.group *= span;
}

}  // namespace

ChunkGroups chunk_groups(const WindowedVariables& view,
                         const std::vector<std::pair<std::string, std::int64_t>>& span) {
  ChunkGroups groups;
  for (std::size_t w = 0; w < view.windows.size(); ++w) {
    const std::string& dim = view.windows[w].name;
    const Positions& selected = view.selected.at(dim);
    const std::int64_t stride = view.grid.strides[w], count = view.grid.counts[w];
    std::int64_t chunk = 1;
    for (const Variable* variable : view.variables)
      for (std::size_t d = 0; d < variable->dims.size(); ++d)
        if (variable->dims[d] == dim)
          chunk = std::max(chunk, variable->array->grid().chunk_shape()[d]);
    ChunkGroups::Axis axis{count, 0, std::max<std::int64_t>(1, chunk / stride)};
    if (chunk % stride == 0 && selected.is_range()) {
      const std::int64_t at = selected[view.grid.first[w] * stride] % chunk;
      axis.lead = std::min(((chunk - at) % chunk + stride - 1) / stride, count);
    }
    if (axis.whole() == 0) axis = {count, 0, count};  // no border of a chunk on either side
    for (const auto& [along, chunks] : span)
      if (along == dim) extend(axis, dim, chunks);
    groups.axes.push_back(axis);
  }
  return groups;
}

std::int64_t default_mixing(const WindowedVariables& view, const ChunkGroups& groups) {
  constexpr double kBytes = 128 << 20;
  double bytes = 0;
  for (const Variable* variable : view.variables) {
    double chunks = 1;
    for (std::size_t d = 0; d < variable->dims.size(); ++d) {
      const std::int64_t chunk =
          std::max<std::int64_t>(1, variable->array->grid().chunk_shape()[d]);
      const int window = window_number(view.windows, variable->dims[d]);
      const auto w = static_cast<std::size_t>(window);
      const std::int64_t span = window < 0 ? view.selected.at(variable->dims[d]).size()
                                           : groups.axes[w].group * view.grid.strides[w];
      chunks *= static_cast<double>((span + chunk - 1) / chunk);
    }
    bytes += chunks * static_cast<double>(variable->array->chunk_bytes());
  }
  return static_cast<std::int64_t>(std::clamp(kBytes / std::max(bytes, 1.0), 1.0, 1024.0));
}

}  // namespace batchfs
