#pragma once
// The header of .npy files. Source: numpy.lib.format, version 1.0 (2.0 when the header is long, 3.0
// for names of fields that are not ASCII).

#include <cstdint>
#include <string>

#include "engine/base/dims.h"
#include "engine/zarr/data_type.h"

namespace batchfs {

/// Data of files in the mount starts on a page, so that they can be mapped and registered.
inline constexpr std::uint64_t kPage = 4096;

/// The whole header, padded with spaces so that data begins at a multiple of `alignment` (at least
/// 64).
std::string npy_header(const DataType& type, const Dims& shape, std::uint64_t alignment = kPage);

}  // namespace batchfs
