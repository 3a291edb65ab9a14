#pragma once
// Casts of numbers between the types that models compute in and that outputs have.

#include <cstdint>

#include "engine/zarr/data_type.h"

namespace batchfs {

/// May values of this type become values of that one: numpy's "same_kind", by which a float may
/// become a narrower float, but no whole number. bfloat16 is a float.
bool can_cast(const DataType& from, const DataType& to);

/// Undoes a normalization while values are cast; see PredictedScale.
struct CastScale {
  const double* multiply = nullptr;  // null: none
  const double* add = nullptr;
  std::int64_t stride = 0;  // entries from one value to the next
};

/// Casts a row of numbers. `source_stride` in bytes, of any sign; results follow one another. Like
/// C casts: floats to the nearest value, whole numbers modulo their range.
using CastRow = void (*)(std::int64_t count, const std::byte* source, std::int64_t source_stride,
                         const CastScale& scale, std::byte* result);

/// Throws not_supported for types that are neither numbers nor bool. Precondition: can_cast().
CastRow cast_row(const DataType& from, const DataType& to, bool is_scaled);

}  // namespace batchfs
