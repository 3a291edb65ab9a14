#pragma once
// The definitions of a view's tensors: those that a view without "tensors" has, and their offsets along
// dimensions of the window: as steps, and how far they go.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/dataset/dataset.h"
#include "engine/view/geometry.h"
#include "engine/view/samples/time_windows.h"
#include "engine/view/spec.h"

namespace batchfs {

/// A tensor for each of the variables.
std::vector<TensorDefinition> definitions_of(const std::vector<std::string>& variables);

/// Resolves durations of the tensor's offsets to steps, or to labels where they go to another
/// source. Throws invalid_argument for offsets along a dimension that is not of the window.
void resolve_tensor_offsets(TensorDefinition& tensor, const std::vector<WindowDim>& window_dims,
                            const Dataset& dataset, const std::optional<SplitSpec>& split,
                            TimeStepsByDim& times);

/// The maximum steps that offsets go before and after the window: {-1, 2}.
std::pair<std::int64_t, std::int64_t> offset_range(const std::vector<TensorDefinition>& tensors,
                                                   const std::string& dim);

/// The same for each dimension of the window, with the steps of "reserve".
std::vector<std::pair<std::int64_t, std::int64_t>> reserved_ranges(
    const std::vector<TensorDefinition>& tensors, const std::vector<OffsetList>& reserve,
    const std::vector<WindowDim>& window_dims);

}  // namespace batchfs
