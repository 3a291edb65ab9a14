#pragma once
// The calendars of CF Conventions 1.11, section 4.4.1: dates as days since the 1970-01-01 of the
// same calendar, and back. No date overflows: callers stay within kFarthestDay.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace batchfs {

inline constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;

enum class Calendar : std::uint8_t {
  standard,             // Julian before 1582-10-15, Gregorian from then on
  proleptic_gregorian,  // that of datetime64
  julian,
  noleap,    // 365_day
  all_leap,  // 366_day
  days_360,  // 360_day: twelve months of 30 days
};

/// A `calendar` attribute in any case; "" and "gregorian" are standard. nullopt for others.
std::optional<Calendar> parse_calendar(std::string_view name);
/// The CF name: "360_day".
std::string_view calendar_name(Calendar calendar);
/// Does datetime64 have the same days, between 1677 and 2262?
bool is_gregorian(Calendar calendar);

/// Dates further away than this many days, 2.7e13 years, are not dates.
inline constexpr std::int64_t kFarthestDay = 10'000'000'000'000'000;

struct Date {
  std::int64_t year = 1970;
  int month = 1, day = 1;
  bool operator==(const Date&) const = default;
};

/// Preconditions: month is 1 to 12; the year is within kFarthestDay / 366 of 0.
int days_in_month(Calendar calendar, std::int64_t year, int month);
/// Is there such a day? In the standard calendar 1582-10-05 to 1582-10-14 are missing.
bool is_date(Calendar calendar, const Date& date);
std::int64_t days_from_date(Calendar calendar, const Date& date);
/// Precondition: |days| is at most kFarthestDay.
Date date_from_days(Calendar calendar, std::int64_t days);
/// 1 for the first of January.
int day_of_year(Calendar calendar, std::int64_t days);

/// A proleptic Gregorian date as days since 1970-01-01, and back.
std::int64_t days_from_civil(std::int64_t year, int month, int day);
void civil_from_days(std::int64_t days, std::int64_t& year, int& month, int& day);

/// A moment as whole days and nanoseconds of the day, from nanoseconds since the calendar's
/// 1970-01-01; nullopt where it is further away than kFarthestDay.
struct Moment {
  std::int64_t days = 0, of_day = 0;
  bool operator==(const Moment&) const = default;
};
std::optional<Moment> moment_of(__int128 nanoseconds);

/// "2000-02-30T06:00:00", fractions of a second only when there are any; "NaT" for a value that is
/// not a date.
std::string format_moment(Calendar calendar, std::optional<__int128> nanoseconds);

}  // namespace batchfs
