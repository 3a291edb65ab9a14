#pragma once
// Numbers of labels, compared exactly: a double cannot hold identifiers of 64 bits.

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "engine/base/json.h"
#include "engine/dataset/dataset.h"

namespace batchfs {

/// Holds every int64, uint64 and double exactly.
using LabelNumber = long double;
static_assert(std::numeric_limits<LabelNumber>::digits >= 64);

/// Reads a number from the front of [begin, end) as std::from_chars does. Text of digits alone is
/// exact, any other number is the double that Python and JSON make of it.
std::from_chars_result read_label_number(const char* begin, const char* end, LabelNumber& number);

/// Precondition: `json` is a number.
LabelNumber label_number(const Json& json);

template <class T>
T element_of(const NdArray& values, std::int64_t i) {
  T value;
  std::memcpy(&value, values.data.data() + static_cast<std::size_t>(i) * sizeof(T), sizeof value);
  return value;
}

/// One element of a numeric coordinate; counts for times, NaN for NaT. Throws not_supported for
/// other types.
LabelNumber label_number(const NdArray& values, std::int64_t i);
/// The count of a datetime64 or timedelta64, or an int64.
std::int64_t label_count(const NdArray& values, std::int64_t i);

/// The number that a coordinate of this type holds for `number`: of float32 0.1f for 0.1.
LabelNumber as_stored(LabelNumber number, const DataType& type);

inline bool is_whole(LabelNumber number) { return std::floor(number) == number; }

/// |a - b|: of whole numbers exact, else rounded as the subtraction of float64 is, which a user
/// takes a tolerance from.
inline LabelNumber label_distance(LabelNumber a, LabelNumber b, bool whole) {
  return std::fabs(whole ? a - b : static_cast<double>(a) - static_cast<double>(b));
}

}  // namespace batchfs
