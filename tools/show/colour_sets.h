#pragma once
// Which arrays of a store make a picture in true colours: bands that are named so, images of red,
// green and blue, and channels of OME-Zarr that have colours.

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/zarr/hierarchy.h"
#include "tools/inspect/inspected_array.h"

namespace batchfs {

/// A plane that is a part of the picture. Texts come from the store as they are: escape them.
struct ColourPart {
  const InspectedArray* array = nullptr;
  std::optional<std::pair<std::size_t, std::int64_t>> at;  // a position along a dimension
  std::string name;                                        // "red b04", "Actin (ff0000)"
  std::array<double, 3> colour{};                          // of its largest values, 0 to 1
  std::optional<std::pair<double, double>> range;          // from the metadata
};

struct ColourSet {
  std::string path;  // of the group or of the array
  std::vector<ColourPart> parts;
  bool holds_bytes = false;  // values from 0 to 255: they are not stretched
  bool own_ranges = false;   // parts are stretched each by itself, else together
};

/// Texts of the coordinate of an array's dimension; empty if it has none.
using LabelsOf =
    std::function<std::vector<std::string>(const InspectedArray& array, const std::string& dim)>;

/// At most kMaxColourSets, in the order of `arrays`; one level of a pyramid. `arrays` outlive the
/// result.
std::vector<ColourSet> colour_sets(const Hierarchy& hierarchy,
                                   const std::vector<InspectedArray>& arrays,
                                   const LabelsOf& labels_of);
inline constexpr std::size_t kMaxColourSets = 8;

}  // namespace batchfs
