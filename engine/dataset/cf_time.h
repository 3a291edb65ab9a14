#pragma once
// CF time units: "hours since 1900-01-01 00:00:0.0 +00:00". Source: CF Conventions 1.11
// section 4.4, read as xarray and cftime read it.

#include <cstdint>
#include <optional>
#include <string>

#include "engine/dataset/calendar.h"

namespace batchfs {

/// "hours", "Hour", "days" ...: nanoseconds in one. nullopt for anything else (months and years
/// have no fixed length).
std::optional<std::int64_t> time_unit_nanoseconds(const std::string& unit);

/// "s", "ms", "us", "ns": nanoseconds in one.
std::optional<std::int64_t> resolution_nanoseconds(const std::string& unit);

struct TimeReference {
  std::int64_t step_ns;      // nanoseconds in one count
  std::int64_t seconds;      // the reference date since the calendar's 1970-01-01T00:00:00 UTC
  std::int64_t nanoseconds;  // fraction, 0 to 999,999,999
  Calendar calendar = Calendar::standard;
  /// xarray leaves the times to cftime: datetime64[ns] does not hold the reference date, or only
  /// cftime knows the name of the unit.
  bool is_for_cftime = false;
};

/// nullopt when the units are not times, or the calendar ("" is standard) is not one of CF's.
/// Months are a unit in the calendar 360_day only.
std::optional<TimeReference> parse_time_units(const std::string& units,
                                              const std::string& calendar);

/// Nanoseconds in `counts` of `step_ns`, as cftime computes them: in long double, rounded to
/// microseconds, and once more next to a whole second. nullopt for numbers that are not finite and
/// lengths that no calendar has.
std::optional<__int128> cftime_nanoseconds(long double counts, std::int64_t step_ns);

/// Is it "<unit> since <date>", whatever the calendar?
bool is_time_units(const std::string& units);

}  // namespace batchfs
