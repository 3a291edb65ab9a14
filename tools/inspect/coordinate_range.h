#pragma once
// The range of a coordinate's values, found by reading at most a few chunks of it.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "engine/dataset/calendar.h"
#include "engine/dataset/dataset.h"

namespace batchfs {

struct CoordinateRange {
  DataType type;                       // of the values, decoded
  std::vector<std::byte> first, last;  // one element each
  /// even_step(), for times in counts of the unit; nullopt also where only both ends were read.
  std::optional<double> step;
  /// The ends of times that are numbers, in their calendar.
  struct Dates {
    Calendar calendar;
    std::string first, last;         // "2000-02-30T06:00:00"; "NaT"
    std::int64_t count_nanoseconds;  // in one count
  };
  std::optional<Dates> dates;
};

/// Reads a coordinate completely if it has at most 1 MiB in at most four chunks; else its first and
/// last element. Blocks. nullopt: it has no elements, its type cannot be read, or its chunks are larger than
/// 64 MiB. Throws what reading throws.
std::optional<CoordinateRange> coordinate_range(const Variable& variable);

/// "90 to -90 degrees_north, step -0.25", "2000-01-01 to 2000-12-31T18:00, step 6 h", "500 hPa",
/// "2000-01-01 to 2000-02-30 360_day, step 1 d".
std::string range_text(const CoordinateRange& range, const std::string& units = "");

}  // namespace batchfs
