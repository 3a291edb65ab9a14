#pragma once
// Coordinates: those of a view, and those that go with one of its batches.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/view/batch_coordinate.h"
#include "engine/view/tensors/tensor_set.h"
#include "engine/view/view.h"

namespace batchfs {

/// Is `dim` a dimension of a tensor, other than the samples'?
bool has_tensor_dim(const std::vector<TensorSpec>& tensors, const std::string& dim);

/// The labels along a dimension of a tensor that no windows slide along: those of the blocks where
/// it is coarsened. nullopt where it has none.
std::optional<BatchCoordinate> tensor_coordinate(const View& view, const TensorSpec& tensor,
                                                 const std::string& dim);

/// The coordinates of the dimensions that windows slide along or that a tensor has, after selection:
/// those that fit into the limit of max_coordinates().
std::vector<ViewCoordinate> collect_coordinates(const Dataset& dataset, const ViewAxes& axes,
                                                const TensorSet& set);

/// Coordinates of the tensors of one batch, for the format "zarr": along "sample" the labels of the
/// windows' starts, and the coordinates of the tensors' other dimensions. They refer to the view.
std::vector<BatchCoordinate> batch_coordinates(const View& view, std::int64_t epoch,
                                               std::int64_t batch);

}  // namespace batchfs
