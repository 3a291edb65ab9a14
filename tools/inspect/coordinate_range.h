#pragma once
// The range of a coordinate's values, found by reading at most a few chunks of it.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "engine/dataset/dataset.h"

namespace batchfs {

struct CoordinateRange {
  DataType type;                       // of the values, decoded
  std::vector<std::byte> first, last;  // one element each
  /// Distance of neighbours, equal everywhere; for times in counts of the unit. nullopt: not equal,
  /// or unknown because only both ends were read.
  std::optional<double> step;
  std::string note;  // units and calendar of times that are numbers
};

/// Reads a coordinate completely if it has at most 1 MiB in at most four chunks; else its first and
/// last element. Blocks. nullopt: it has no elements, its type cannot be read, or its chunks are larger than
/// 64 MiB. Throws what reading throws.
std::optional<CoordinateRange> coordinate_range(const Variable& variable);

/// "90 to -90 degrees_north, step -0.25", "2000-01-01 to 2000-12-31T18:00, step 6 h", "500 hPa".
std::string range_text(const CoordinateRange& range, const std::string& units = "");

}  // namespace batchfs
