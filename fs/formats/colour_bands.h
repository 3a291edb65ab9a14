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
/// "r10m/b4". Only the part after the last '/' or ':' counts, without the "_0" of an entry of a
/// stack.
std::optional<std::array<std::size_t, 3>> colour_bands(const std::vector<std::string>& names);

/// From values to the 256 steps of a colour.
struct ColourStretch {
  double low = 0, high = 255;

  /// Cuts off the lowest and the highest 2 % of the finite values of all bands together: one
  /// stretch for all bands keeps the hue. Reads every value.
  static ColourStretch of(std::span<const PixelMeans> bands);
  /// Position of `value` in the stretch, from 0 to 1; 0 for a missing value.
  double part(double value) const;
};

/// The colour of the given parts of red, green and blue, each from 0 to 1.
Pixel stretched_colour(double red, double green, double blue);

}  // namespace batchfs
