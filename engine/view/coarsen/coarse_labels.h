#pragma once
// Coordinates of a coarsened dimension.

#include <optional>

#include "engine/dataset/dataset.h"

namespace batchfs {

/// The mean of every `size` consecutive labels, as xarray.coarsen computes it: of integers
/// in float64, of times down to a unit of theirs. `size` divides their number. nullopt for labels
/// without means, such as strings, and for blocks with NaT.
std::optional<NdArray> coarse_labels(const NdArray& labels, std::int64_t size);

}  // namespace batchfs
