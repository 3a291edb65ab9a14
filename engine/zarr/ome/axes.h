#pragma once
// "axes" of OME-Zarr: names, types and units of the dimensions of an image.
// Source: OME-Zarr specification 0.1 to 0.6, https://ngff.openmicroscopy.org.

#include <cstddef>
#include <vector>

#include "engine/base/json.h"
#include "engine/zarr/array_axis.h"

namespace batchfs {

/// Maximum bytes of a name, unit or label: those of a file name.
inline constexpr std::size_t kMaxOmeName = 255;

/// A list of objects {name, type, unit}, or of names as version 0.3 has it. Throws invalid_argument
/// for names that are missing, empty or given twice, not_supported for more axes than an array has
/// dimensions.
std::vector<ArrayAxis> parse_axes(const JsonRef& json);

/// t, c, z, y, x: of every image of versions 0.1 and 0.2.
std::vector<ArrayAxis> five_axes();

}  // namespace batchfs
