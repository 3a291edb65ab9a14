#pragma once
// Coordinates that go with one batch of windows, for the format "zarr".

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/view/view.h"

namespace batchfs {

/// Is `dim` a dimension of a tensor, other than the samples'?
bool has_tensor_dim(const std::vector<TensorSpec>& tensors, const std::string& dim);

/// The labels along a dimension of a tensor that no windows slide along: those of the blocks where
/// it is coarsened. nullopt where it has none.
std::optional<BatchCoordinate> tensor_coordinate(const View& view, const TensorSpec& tensor,
                                                 const std::string& dim);

/// Along "sample" the labels of the windows' starts, and the coordinates of the tensors' other
/// dimensions. `view` is a view of windows.
std::vector<BatchCoordinate> coordinates_of_batch(const View& view, std::int64_t epoch,
                                                  std::int64_t batch);

}  // namespace batchfs
