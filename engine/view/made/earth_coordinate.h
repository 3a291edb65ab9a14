#pragma once
// The latitudes and longitudes of a dataset's cells, along whatever dimensions they have: one of
// their own, one of cells that both share, or two of a curvilinear grid.

#include <memory>
#include <string>
#include <vector>

#include "engine/dataset/dataset.h"

namespace batchfs {

enum class EarthAxis : std::uint8_t { latitude, longitude };

/// Immutable.
struct EarthCoordinate {
  std::string name;               // of the variable
  std::vector<std::string> dims;  // of the dataset
  Dims shape;
  std::vector<double> degrees;  // C order
};

/// The variable that holds them, as in CF Conventions, sections 4.1 and 4.2: by its units or
/// standard_name; else by the name latitude, lat, longitude or lon. nullptr: none does.
const Variable* find_earth_variable(const Dataset& dataset, EarthAxis axis);

/// Reads it, blocking. `in_degrees`: values without units are degrees; otherwise they are only if
/// they are too large for radians. Throws invalid_argument or not_found with `path`.
std::shared_ptr<const EarthCoordinate> read_earth_coordinate(const Dataset& dataset, EarthAxis axis,
                                                             bool in_degrees,
                                                             const std::string& path);

}  // namespace batchfs
