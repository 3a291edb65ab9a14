#pragma once
// Selecting times by parts of their dates: all Junes, noons, winters. The fields are those of
// xarray's `.dt`, in the calendar of the times.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/json.h"
#include "engine/dataset/calendar.h"
#include "engine/dataset/dataset.h"

namespace batchfs {

enum class CalendarField : std::uint8_t {
  year,
  month,      // 1 to 12
  day,        // of the month, 1 to 31
  hour,       // 0 to 23
  minute,     // 0 to 59
  weekday,    // 0, Monday, to 6, Sunday
  dayofyear,  // 1 to 366
  season,     // DJF, MAM, JJA, SON: 0 to 3
};

std::optional<CalendarField> parse_calendar_field(std::string_view name);
std::string_view calendar_field_name(CalendarField field);
/// "year, month, ...", for messages.
std::string calendar_field_names();

/// Returns the field of a time.
std::int64_t calendar_field(CalendarField field, Calendar calendar, const Moment& moment);

/// Conditions on fields; a time passes that meets all of them.
class CalendarTest {
 public:
  /// Adds the value of a key of this name in a view: a number, a list of numbers, of seasons.
  /// Throws invalid_argument naming its path for values that the field never has.
  void add(CalendarField field, const JsonRef& values);
  /// "6,7,8", "6:8" (both included), "DJF,MAM". `where` is the option, for messages.
  void add(CalendarField field, const std::string& values, const std::string& where);

  bool empty() const { return conditions_.empty(); }
  bool passes(Calendar calendar, __int128 nanoseconds) const;
  /// "month 6, 7 and hour 0", for messages.
  std::string text() const;

 private:
  struct Condition {
    CalendarField field;
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges;  // both ends included
    std::string text;
  };
  std::vector<Condition> conditions_;
};

/// For each position of a dimension, does its time pass? A missing time does not. Throws
/// invalid_argument, "`where`: ...", where the dimension's coordinate holds no times.
std::vector<bool> passing_times(const Dataset& dataset, const std::string& dim,
                                const CalendarTest& test, const std::string& where);

}  // namespace batchfs
