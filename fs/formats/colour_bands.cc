#include "fs/formats/colour_bands.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <string_view>

namespace batchfs {

namespace {

using Names = std::array<std::string_view, 3>;
constexpr std::array<Names, 4> kBands = {Names{"red", "green", "blue"}, Names{"r", "g", "b"},
                                         Names{"b04", "b03", "b02"}, Names{"b4", "b3", "b2"}};

std::string band_name(std::string_view name) {
  if (const std::size_t at = name.find_last_of("/:"); at != std::string_view::npos)
    name.remove_prefix(at + 1);
  if (name.ends_with("_0")) name.remove_suffix(2);
  std::string lower(name);
  for (char& letter : lower)
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return lower;
}

}  // namespace

std::optional<std::array<std::size_t, 3>> colour_bands(const std::vector<std::string>& names) {
  std::vector<std::string> bands;
  for (const std::string& name : names) bands.push_back(band_name(name));
  for (const Names& wanted : kBands) {
    std::array<std::size_t, 3> found{};
    for (std::size_t c = 0; c < wanted.size(); ++c)
      found[c] = static_cast<std::size_t>(std::find(bands.begin(), bands.end(), wanted[c]) -
                                          bands.begin());
    if (*std::max_element(found.begin(), found.end()) < bands.size()) return found;
  }
  return std::nullopt;
}

ColourStretch ColourStretch::of(std::span<const PixelMeans> bands) {
  constexpr double kLeftOut = 0.02;
  std::vector<double> values;
  for (const PixelMeans& band : bands)
    std::copy_if(band.values.begin(), band.values.end(), std::back_inserter(values),
                 [](double value) { return std::isfinite(value); });
  if (values.empty()) return {0, 0};
  const auto at = [&](double part) {
    const auto place =
        values.begin() + static_cast<std::ptrdiff_t>(part * static_cast<double>(values.size() - 1));
    std::nth_element(values.begin(), place, values.end());
    return *place;
  };
  return {at(kLeftOut), at(1 - kLeftOut)};
}

double ColourStretch::part(double value) const {
  if (std::isnan(value)) return 0;
  // Halves: the range itself may be past the largest number.
  return high > low ? std::clamp((value / 2 - low / 2) / (high / 2 - low / 2), 0.0, 1.0) : 0.5;
}

Pixel stretched_colour(double red, double green, double blue) {
  const auto step = [](double part) {
    return static_cast<unsigned>(std::lround(std::clamp(part, 0.0, 1.0) * 255));
  };
  return true_colour(step(red), step(green), step(blue));
}

}  // namespace batchfs
