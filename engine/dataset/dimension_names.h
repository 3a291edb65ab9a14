#pragma once
// The names of the dimensions of an array.
// Sources: xarray's Zarr backend (v3 dimension_names, v2 _ARRAY_DIMENSIONS, NCZarr dimrefs); where
// an array has no names, those of its axes (OME-Zarr).

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "engine/zarr/array_metadata.h"

namespace batchfs {

/// The stored names, one for each dimension; nullopt: unnamed. A name may occur more than once.
std::vector<std::optional<std::string>> stored_dimension_names(const ArrayMetadata& array);

/// Distinct names, one for each dimension. Unnamed dimensions, also those named "", are "dim_0",
/// "dim_1", ... by their place. A name that occurs again, as in covariances (time, c, c), is "c:2",
/// "c:3", ...
std::vector<std::string> dimension_names(const ArrayMetadata& array);

/// For each dimension the number of the first one that has the same stored name: its own number,
/// unless it repeats a name. Unnamed dimensions repeat none.
std::vector<std::size_t> first_dims_of_name(const ArrayMetadata& array);

}  // namespace batchfs
