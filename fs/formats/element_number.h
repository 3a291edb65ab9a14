#pragma once
// One element of a tensor or an array as a number that a picture can show.

#include <cstddef>

#include "engine/zarr/data_type.h"

namespace batchfs {

/// Has this type a number for each element? Texts, raw bytes and structures have none.
bool has_number(const DataType& type);

/// An element in native byte order: times as counts, complex numbers by their magnitude; NaN for
/// missing values. Precondition: has_number(type).
double element_number(const DataType& type, const std::byte* element);

}  // namespace batchfs
