#include "fs/formats/pixel_means.h"

#include <algorithm>
#include <cmath>

#include "fs/formats/element_number.h"
#include "fs/formats/preview.h"

namespace batchfs {

PixelMeans pixel_means(const MapGrid& grid, std::int64_t first, std::span<const std::byte> values) {
  const std::int64_t down = grid.down(), across = grid.across();
  PixelMeans means;
  means.values.assign(static_cast<std::size_t>(grid.maps * down * across),
                      std::numeric_limits<double>::quiet_NaN());
  std::size_t at = 0;
  for (std::int64_t map = 0; map < grid.maps; ++map)
    for (std::int64_t y = 0; y < down; ++y)
      for (std::int64_t x = 0; x < across; ++x, ++at) {
        double sum = 0;
        std::int64_t count = 0;
        for (std::int64_t j = y * grid.average; j < std::min((y + 1) * grid.average, grid.lines);
             ++j)
          for (std::int64_t i = x * grid.average;
               i < std::min((x + 1) * grid.average, grid.columns); ++i) {
            const std::int64_t element =
                first + map * grid.step + j * grid.line_step + i * grid.column_step;
            const double value =
                element_number(grid.type, values.data() + element * grid.type.itemsize);
            if (!std::isfinite(value)) continue;
            sum += value;
            ++count;
          }
        if (count == 0) continue;
        means.values[at] = sum / static_cast<double>(count);
        means.least = std::min(means.least, means.values[at]);
        means.most = std::max(means.most, means.values[at]);
      }
  return means;
}

ColourScale::ColourScale(const PixelMeans& means)
    : low(means.least), high(means.most), first(Preview::kFirstColour), last(Preview::kLastColour) {
  // Zero means something where a fair part of the values is on either side of it.
  constexpr double kFairPart = 0.2;
  const double largest = std::max(-low, high);
  if (low >= 0 || high <= 0 || std::min(-low, high) < kFairPart * largest) return;
  low = -largest;
  high = largest;
  first = Preview::kFirstDiverging;
  last = Preview::kLastDiverging;
}

bool ColourScale::is_diverging() const { return first == Preview::kFirstDiverging; }

Pixel ColourScale::at(double part) const {
  return first + static_cast<Pixel>(
                     std::lround(std::clamp(part, 0.0, 1.0) * static_cast<double>(last - first)));
}

Pixel ColourScale::colour(double value) const {
  if (std::isnan(value)) return Preview::kMissing;
  // Halves: the range itself may be past the largest number.
  return at(high > low ? (value / 2 - low / 2) / (high / 2 - low / 2) : 0.5);
}

}  // namespace batchfs
