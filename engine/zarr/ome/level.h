#pragma once
// Which level of an OME-Zarr image a user asks for: by its number, or by the distance of pixels.

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/json.h"
#include "engine/zarr/ome/image.h"

namespace batchfs {

struct LevelChoice {
  struct Distance {
    std::string axis;
    double value = 1;
    std::string unit;  // empty: that of the axis
  };

  std::size_t number = 0;            // without `resolution`; 0 is the highest resolution
  std::vector<Distance> resolution;  // the nearest level
};

/// A view's "level": 1, or {"resolution": {"x": "0.5 um"}}. Throws invalid_argument with the path.
LevelChoice parse_level(const JsonRef& json);
/// The same as the option --level: "1", "x=0.5um" or "y=0.5um,x=0.5um"; `where` names it in errors.
LevelChoice parse_level(const std::string& text, const std::string& where);

/// The number of the level. Between two that are as near, by the ratio of the distances, the one of
/// the higher resolution. Throws invalid_argument for a number beyond the last level, an axis that
/// the image does not have or whose scale is not known, and for a unit of another kind.
std::size_t choose_level(const OmeImage& image, const LevelChoice& choice);

}  // namespace batchfs
