#pragma once
// Maps among the elements of a tensor or an array, averaged to pixels, and the colours of these.

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "engine/zarr/data_type.h"
#include "fs/formats/canvas.h"

namespace batchfs {

/// Where maps lie among elements, and how many elements a pixel stands for.
struct MapGrid {
  DataType type;
  std::int64_t lines = 0, columns = 0;          // elements of a map
  std::int64_t line_step = 0, column_step = 1;  // from one to the next, in elements
  std::int64_t maps = 0, step = 0;  // maps side by side, and how many elements they are apart
  std::int64_t average = 1;         // elements that a pixel stands for, either way

  std::int64_t down() const { return (lines + average - 1) / average; }
  std::int64_t across() const { return (columns + average - 1) / average; }
};

/// The mean of the finite elements of each pixel; NaN where none is.
struct PixelMeans {
  std::vector<double> values;  // by map, line and column
  double least = std::numeric_limits<double>::infinity(), most = -least;
};

/// Averages the maps whose first element is element `first` of `values`. Precondition:
/// has_number(grid.type).
PixelMeans pixel_means(const MapGrid& grid, std::int64_t first, std::span<const std::byte> values);

/// From values to colours of preview_palette(): around zero where a fair part of the values is on
/// either side of it, else from the least to the most.
struct ColourScale {
  double low, high;
  Pixel first, last;

  explicit ColourScale(const PixelMeans& means);
  bool is_diverging() const;
  /// `part`: from 0, the lowest, to 1.
  Pixel at(double part) const;
  /// The colour of a value; missing values have a separate colour.
  Pixel colour(double value) const;
};

}  // namespace batchfs
