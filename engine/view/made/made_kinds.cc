#include "engine/view/made/made_kinds.h"

#include <algorithm>
#include <iterator>

namespace batchfs {

namespace {

constexpr bool kTime = true, kLatitude = true, kLongitude = true, kScaled = true;

constexpr std::size_t kMaxOperands = 64;

constexpr MadeKind kKinds[] = {
    {"sin_latitude", Made::sin_latitude, !kTime, kLatitude, !kLongitude, kScaled},
    {"cos_latitude", Made::cos_latitude, !kTime, kLatitude, !kLongitude, kScaled},
    {"sin_longitude", Made::sin_longitude, !kTime, !kLatitude, kLongitude, kScaled},
    {"cos_longitude", Made::cos_longitude, !kTime, !kLatitude, kLongitude, kScaled},
    {"sin_julian_day", Made::sin_julian_day, kTime, !kLatitude, !kLongitude, kScaled},
    {"cos_julian_day", Made::cos_julian_day, kTime, !kLatitude, !kLongitude, kScaled},
    {"sin_local_time", Made::sin_local_time, kTime, !kLatitude, kLongitude, kScaled},
    {"cos_local_time", Made::cos_local_time, kTime, !kLatitude, kLongitude, kScaled},
    {"year_progress", Made::year_progress, kTime, !kLatitude, !kLongitude, !kScaled},
    {"sin_year_progress", Made::sin_year_progress, kTime, !kLatitude, !kLongitude, kScaled},
    {"cos_year_progress", Made::cos_year_progress, kTime, !kLatitude, !kLongitude, kScaled},
    {"day_progress", Made::day_progress, kTime, !kLatitude, kLongitude, !kScaled},
    {"sin_day_progress", Made::sin_day_progress, kTime, !kLatitude, kLongitude, kScaled},
    {"cos_day_progress", Made::cos_day_progress, kTime, !kLatitude, kLongitude, kScaled},
    // GraphCast's names.
    {"year_progress_sin", Made::sin_year_progress, kTime, !kLatitude, !kLongitude, kScaled},
    {"year_progress_cos", Made::cos_year_progress, kTime, !kLatitude, !kLongitude, kScaled},
    {"day_progress_sin", Made::sin_day_progress, kTime, !kLatitude, kLongitude, kScaled},
    {"day_progress_cos", Made::cos_day_progress, kTime, !kLatitude, kLongitude, kScaled},
    {"cos_zenith", Made::cos_zenith, kTime, kLatitude, kLongitude, kScaled},
    {"insolation", Made::insolation, kTime, kLatitude, kLongitude, !kScaled},
    {"toa_radiation", Made::toa_radiation, kTime, kLatitude, kLongitude, !kScaled},
    {"constant", Made::constant, !kTime, !kLatitude, !kLongitude, kScaled},
    {"hypot", Made::hypot, !kTime, !kLatitude, !kLongitude, !kScaled, 2, 2},
    {"wind_speed", Made::hypot, !kTime, !kLatitude, !kLongitude, !kScaled, 2, 2},
    {"sum", Made::sum, !kTime, !kLatitude, !kLongitude, !kScaled, 2, kMaxOperands},
    {"difference", Made::difference, !kTime, !kLatitude, !kLongitude, !kScaled, 2, 2},
    {"product", Made::product, !kTime, !kLatitude, !kLongitude, !kScaled, 2, kMaxOperands},
    {"ratio", Made::ratio, !kTime, !kLatitude, !kLongitude, !kScaled, 2, 2},
};

}  // namespace

const MadeKind* find_made_kind(std::string_view name) {
  const auto* const found = std::find_if(std::begin(kKinds), std::end(kKinds),
                                         [&](const MadeKind& kind) { return kind.name == name; });
  return found == std::end(kKinds) ? nullptr : found;
}

std::vector<std::string> made_kind_names() {
  std::vector<std::string> names;
  for (const MadeKind& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

}  // namespace batchfs
