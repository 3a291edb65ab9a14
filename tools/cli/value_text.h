#pragma once
// One element of an array as text: JSON for programs, or as people read it.

#include <cstddef>
#include <string>

#include "engine/zarr/data_type.h"

namespace batchfs {

enum class TextStyle {
  /// NaN, infinities and NaT are null, since JSON has no such numbers; complex numbers are [re,
  /// im],
  /// datetimes ISO 8601 strings, timedeltas counts of their unit, structures objects, raw bytes
  /// hex.
  json,
  /// The same to read: nan, inf, NaT, 1+2j, unquoted dates.
  people,
};

/// Appends one element of `type.itemsize` bytes, native byte order.
void append_value(std::string& out, const DataType& type, const std::byte* element,
                  TextStyle style);

}  // namespace batchfs
