#pragma once
// Pictures in true colours: which bands are red, green and blue, and how their values become
// colours.

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fs/formats/pixel_means.h"

namespace batchfs {

/// Numbers of the red, the green and the blue band among `names`: "red", "R", Sentinel-2's "B04" or
/// "r10m/b4". What follows the last '/' or ':' counts, without the "_0" of an entry of a stack.
std::optional<std::array<std::size_t, 3>> colour_bands(const std::vector<std::string>& names);

/// From values to the 256 steps of a colour.
struct ColourStretch {
  double low = 0, high = 255;

  /// Without the lowest and the highest 2 % of the finite values of all bands together. One for all
  /// of them keeps the hue; reads every value.
  static ColourStretch of(std::span<const PixelMeans> bands);
  /// From 0 to 1; 0 for a missing value.
  double part(double value) const;
};

/// Of the parts of red, green and blue, from 0 to 1 each.
Pixel stretched_colour(double red, double green, double blue);

}  // namespace batchfs
