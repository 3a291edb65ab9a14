#include "engine/view/window_checks.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/dataset/circle.h"
#include "engine/dataset/labels.h"
#include "engine/view/describe/batch_coordinates.h"

namespace batchfs {

void check_circle(const Dataset& dataset, const std::string& dim, const Positions& positions) {
  const Variable* index = dataset.index_of(dim);
  if (index == nullptr || positions.size() == 0) return;
  const NdArray& values = dataset.index_values(dim);
  const auto period = period_of(*index, values);
  if (!period || covers_circle(values, *period, positions)) return;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("window.{0}.wrap: the values of '{0}', {1} to {2}, are a part of the circle, so "
                  "that a window over their end would join two places that are not neighbours; "
                  "leave \"wrap\" out",
                  dim, label_text(values, positions[0]),
                  label_text(values, positions[positions.size() - 1])));
}

std::pair<std::int64_t, std::int64_t> start_numbers(const WindowSpec& window, std::int64_t length,
                                                    std::int64_t least, std::int64_t most) {
  std::int64_t first = 0, last = -1;
  if (window.wrap) {
    last = length > 0 ? (length - 1) / window.stride : -1;
  } else {
    first = (-least + window.stride - 1) / window.stride;
    const std::int64_t room = length - window.size - most;
    last = room >= 0 ? room / window.stride : -1;
    if (window.edge != WindowSpec::Edge::drop) {
      // One more when something is left after the last whole window, and every offset of it begins
      // inside.
      const std::int64_t next = std::max(first, last + 1);
      const bool left = last < first || last * window.stride < room;
      if (left && next * window.stride + most < length) last = next;
    }
  }
  if (last < first)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("window.{}: no window of {} fits: the selection has {} positions{}",
                            window.dim, window.size, length,
                            least != 0 || most != 0 ? " and the offsets need more" : ""));
  return {first, last};
}

void check_footprints(const OffsetList& offsets, const std::optional<SplitSpec>& split) {
  if (!split) return;
  for (const SplitSpec::Length& gap : split->gap)
    if (gap.dim == offsets.dim) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: lengths of time that another source looks up are not counted in "
                          "the footprints that \"split\" keeps apart; give a \"gap\" along '{}' "
                          "that is longer than they are",
                          offsets.path, offsets.dim));
}

bool may_pad(const std::vector<WindowDim>& windows,
             const std::vector<VariablePlacement>& placements) {
  const auto has_gaps = [](const VariablePlacement& placement) {
    return std::any_of(placement.axes.begin(), placement.axes.end(),
                       [](const AxisPlacement& axis) { return axis.gaps().has_gaps(); });
  };
  return std::any_of(windows.begin(), windows.end(), [](const WindowDim& w) { return w.padded; }) ||
         std::any_of(placements.begin(), placements.end(), has_gaps);
}

void check_zarr_names(const std::vector<std::string>& formats,
                      const std::vector<TensorSpec>& tensors) {
  if (std::find(formats.begin(), formats.end(), "zarr") == formats.end()) return;
  for (const TensorSpec& tensor : tensors)
    if (tensor.name == "sample" || has_tensor_dim(tensors, tensor.name))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("tensors: '{}' is also the name of a dimension, which the format "
                              "\"zarr\" cannot have; give "
                              "the tensor another name in \"tensors\"",
                              tensor.name));
}

}  // namespace batchfs
