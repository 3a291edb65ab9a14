#pragma once
// Labels of a coordinate: parsing a user's text, comparing it with the values, printing values.

#include <optional>
#include <string>
#include <utility>

#include "engine/dataset/dataset.h"
#include "engine/dataset/label_number.h"

namespace batchfs {

/// A date as a user types it: "2000", "2000-01", "2000-01-01T06", "2000-01-01 06:30", of any
/// calendar: the month is 1 to 12, the day 1 to 31. The year is 0 to 9999.
struct DateText {
  Date date{0, 1, 1};
  std::int64_t of_day = 0;  // nanoseconds
  int level = 0;  // how fine: 0 year, 1 month, 2 day, 3 hour, 4 minute, 5 second and below
};
/// nullopt when it is not a date.
std::optional<DateText> parse_date_text(const std::string& text);

/// Nanoseconds since the calendar's 1970-01-01 of a date's first instant and of the last instant it
/// stands for, both inclusive: a partial date is a range, as in pandas. Also where datetime64[ns]
/// ends (1677 to 2262), so that "until 9999" can be written.
struct DateRange {
  __int128 first, last;
  int level;  // as in DateText
};
/// nullopt when it is not a date of this calendar.
std::optional<DateRange> parse_date(const std::string& text,
                                    Calendar calendar = Calendar::proleptic_gregorian);

/// Length of a unit of datetime64 or timedelta64; nullopt for months and years, and for finer
/// units.
std::optional<std::int64_t> unit_nanoseconds(const DataType& type);

/// Nanoseconds from 1970-01-01 to a datetime64; nullopt for NaT. Throws not_supported for units
/// below that.
std::optional<__int128> time_nanoseconds(std::int64_t count, const DataType& type);

/// The times of an index in their calendar: datetime64, or numbers that count from a reference date
/// (CfDecoding::counts_from). Refers to the index, which must outlive it.
class TimeAxis {
 public:
  /// nullopt when the index holds no times.
  static std::optional<TimeAxis> of(const Dataset::Index& index);

  Calendar calendar() const { return calendar_; }
  /// Since the calendar's 1970-01-01, of counts rounded to microseconds as cftime rounds them;
  /// nullopt for a value that is not a date. Throws not_supported for units of datetime64 below
  /// nanoseconds.
  std::optional<__int128> nanoseconds(std::int64_t i) const;
  /// "2000-02-30T06:00:00".
  std::string text(std::int64_t i) const;

 private:
  explicit TimeAxis(const Dataset::Index& index) : index_(&index) {}
  const Dataset::Index* index_;
  Calendar calendar_ = Calendar::proleptic_gregorian;
};

/// "2000-01-01T06:00:00" (fractions only when there are any); "NaT"; the count of a unit below
/// nanoseconds.
std::string format_time(std::int64_t count, const DataType& type);

/// One element of a coordinate as people and JSON show it.
std::string label_text(const NdArray& values, std::int64_t i);
/// The same; times that are numbers as dates.
std::string label_text(const Dataset::Index& index, std::int64_t i);
/// The same as JSON: numbers stay numbers.
Json label_json(const NdArray& values, std::int64_t i);

}  // namespace batchfs
