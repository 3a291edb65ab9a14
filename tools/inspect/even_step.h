#pragma once
// Whether the values of a coordinate are evenly spaced.

#include <cstdint>
#include <optional>

#include "engine/array/array.h"
#include "engine/dataset/labels.h"

namespace batchfs {

/// The distance of neighbours, not 0, if it is the same everywhere: of whole numbers and times
/// exactly, of floating-point numbers as far as their type rounds; in counts of a time's unit.
/// nullopt: it differs, there are fewer than two values, a value is missing or not a number.
///
/// Values are compared with the line through both ends, so that a slow drift is not even either.
/// float64 that was rounded to float32 on its way, as widened longitudes are, has the rounding of
/// float32, unless no value has the last bits of one: whole metres were not rounded. A step that is
/// not well above the rounding is unknown.
///
/// 0, 6, 12 have the step 6; 0, 6, 13 have none.
std::optional<double> even_step(const NdArray& values);

/// The same in nanoseconds, of times in their calendar. Precondition: `times` has `count` of them.
std::optional<double> even_step(const TimeAxis& times, std::int64_t count);

}  // namespace batchfs
