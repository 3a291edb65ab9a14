#include "engine/view/tensors/tensor_definitions.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/view/window_checks.h"

namespace batchfs {

std::vector<TensorDefinition> definitions_of(const std::vector<std::string>& variables) {
  std::vector<TensorDefinition> definitions;
  for (std::size_t i = 0; i < variables.size(); ++i)
    definitions.push_back({.name = variables[i],
                           .variables = {variables[i]},
                           .path = fmt::format("variables[{}]", i)});
  return definitions;
}

void resolve_tensor_offsets(TensorDefinition& tensor, const std::vector<WindowDim>& window_dims,
                            const Dataset& dataset, const std::optional<SplitSpec>& split,
                            TimeStepsByDim& times) {
  for (const OffsetList& list : tensor.durations) {
    const JoinedOffsets of = joined_offsets(tensor, list.dim, dataset);
    if (of.in_others) check_footprints(list, split);
    if (of.in_anchor || !of.in_others)
      tensor.by_label.emplace_back(list.dim, resolve_offsets(list, window_dims, times));
    tensor.offsets.emplace_back(list.dim, std::vector<std::int64_t>(list.durations.size()));
  }
  for (const auto& [dim, steps] : tensor.offsets)
    if (window_number(window_dims, dim) < 0)
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("{}.offsets.{}: offsets need a dimension of \"window\"", tensor.path, dim));
}

std::pair<std::int64_t, std::int64_t> offset_range(const std::vector<TensorDefinition>& tensors,
                                                   const std::string& dim) {
  std::int64_t least = 0, most = 0;
  for (const TensorDefinition& tensor : tensors)
    if (const auto* steps = tensor.offsets_along(dim)) {
      least = std::min(least, *std::min_element(steps->begin(), steps->end()));
      most = std::max(most, *std::max_element(steps->begin(), steps->end()));
    }
  return {least, most};
}

std::vector<std::pair<std::int64_t, std::int64_t>> reserved_ranges(
    const std::vector<TensorDefinition>& tensors, const std::vector<OffsetList>& reserve,
    const std::vector<WindowDim>& window_dims) {
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  for (const WindowDim& window : window_dims) {
    auto [least, most] = offset_range(tensors, window.name);
    for (const OffsetList& list : reserve)
      if (list.dim == window.name)
        for (const std::int64_t step : list.steps) {
          least = std::min(least, step);
          most = std::max(most, step);
        }
    ranges.emplace_back(least, most);
  }
  return ranges;
}

}  // namespace batchfs
