#pragma once
// What values a coordinate has, without reading more than a few chunks of it.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "engine/dataset/dataset.h"

namespace batchfs {

struct CoordinateRange {
  DataType type;                       // of the values, decoded
  std::vector<std::byte> first, last;  // one element each
  /// Between neighbours, the same everywhere: in counts of the unit for times. nullopt: not the
  /// same, or not known because only both ends were read.
  std::optional<double> step;
  std::string note;  // units and calendar of times that are numbers
};

/// Reads a coordinate of at most 1 MiB in at most four chunks, of another one the first and the
/// last element. Blocks. nullopt: it has no elements, cannot be read, or chunks of it are larger
/// than 64 MiB.
std::optional<CoordinateRange> coordinate_range(const Variable& variable);

/// "90 to -90 degrees_north, step -0.25", "2000-01-01 to 2000-12-31T18:00, step 6 h", "500 hPa".
std::string range_text(const CoordinateRange& range, const std::string& units = "");

}  // namespace batchfs
