#pragma once
// Cyclic coordinates: longitudes, and other angles in degrees that go all the way round. On them
// 350 and -10 are one place, and a range may go over the end of the stored values.

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/dataset/dataset.h"
#include "engine/dataset/positions.h"

namespace batchfs {

/// The period of a coordinate's values, 360 for longitudes in degrees; nullopt if the coordinate is
/// not cyclic. Longitudes are recognized as in CF Conventions, section 4.2: by units of degrees
/// east or by a standard_name; else by the axis X or the names lon and longitude, where the units
/// do not contradict. Other coordinates in degrees are cyclic if their evenly spaced values go once
/// round.
std::optional<double> period_of(const Variable& index, const NdArray& values);

/// The rounding error of labels near a period: half the distance of neighbouring numbers of the
/// type.
double circle_rounding(const DataType& type, double period);

/// The positions with from <= value <= to modulo `period`, in the order that begins at `from` and
/// goes up, modulo `period`. A value that is stored twice, as 0 and 360, is taken once: at its
/// first position. If `from` and `to` differ by a whole period, the result is the whole circle.
/// Precondition: `values` are real numbers; from and to differ by at most a period.
std::vector<std::int64_t> positions_on_circle(const NdArray& values, double period, double from,
                                              double to);

/// Do the values at `positions`, in this order, go once round a circle of this period: is the way
/// from the last one to the first no longer than 1.5 times the longest way from one to the next?
/// Precondition: `values` are real numbers.
bool covers_circle(const NdArray& values, double period, const Positions& positions);

}  // namespace batchfs
