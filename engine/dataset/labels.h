#pragma once
// Labels of a coordinate: parsing what a user typed, comparing it with the values, printing values.

#include <optional>
#include <string>
#include <utility>

#include "engine/dataset/dataset.h"

namespace batchfs {

/// A date as a user types it: "2000", "2000-01", "2000-01-01T06", "2000-01-01 06:30". Nanoseconds
/// since 1970-01-01 of its first instant and of the last instant it stands for, both inclusive: a
/// partial date is a range, as in pandas. nullopt when it is no date. Any year from 0 to 9999 fits,
/// also where datetime64[ns] ends (1677 to 2262), so that "until 9999" can be said.
struct DateRange {
  __int128 first, last;
  int level;  // how fine it was given: 0 year, 1 month, 2 day, 3 hour, 4 minute, 5 second and below
};
std::optional<DateRange> parse_date(const std::string& text);

/// How long a unit of datetime64 or timedelta64 is; nullopt for months and years, and for what is
/// finer.
std::optional<std::int64_t> unit_nanoseconds(const DataType& type);

/// Nanoseconds from 1970-01-01 to a datetime64; nullopt for NaT. Throws not_supported for units
/// below that.
std::optional<__int128> time_nanoseconds(std::int64_t count, const DataType& type);

/// "2000-01-01T06:00:00" (fractions only when there are any); "NaT"; the count of a unit below
/// nanoseconds.
std::string format_time(std::int64_t count, const DataType& type);

/// One element of a coordinate as people and JSON show it.
std::string label_text(const NdArray& values, std::int64_t i);
/// The same as JSON: numbers stay numbers.
Json label_json(const NdArray& values, std::int64_t i);

/// One element of a numeric coordinate; counts for times.
double label_number(const NdArray& values, std::int64_t i);
std::int64_t label_count(const NdArray& values, std::int64_t i);

}  // namespace batchfs
