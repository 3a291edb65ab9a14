#pragma once
// The coastlines of the world, for maps whose axes are longitude and latitude.

#include <string>
#include <utility>
#include <vector>

namespace batchfs {

/// Longitude (-180 to 180) and latitude in degrees.
using LonLat = std::pair<double, double>;
using Polyline = std::vector<LonLat>;

/// About 130 lines, read from the program once. Thread-safe.
const std::vector<Polyline>& coastlines();

/// Lines in the format described in coastline_data.cc. Damaged text results in fewer points.
std::vector<Polyline> parse_polylines(const char* text);

/// The part of the coastlines inside a map, as the "d" of an SVG path. `longitudes` are those of
/// the middles of the map's columns from the left, `latitudes` those of its lines from the top; the
/// map is `width` times `height`. Empty if one of them does not rise or fall throughout or has
/// values that are not such degrees, or if there is no coast.
std::string coast_path(const std::vector<double>& longitudes, const std::vector<double>& latitudes,
                       double width, double height);

}  // namespace batchfs
