#include "engine/dataset/calendar.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "engine/base/rounding.h"
#include "engine/base/strings.h"

namespace batchfs {

namespace {

constexpr __int128 kNanosecondsPerDay = static_cast<__int128>(86400) * kNanosecondsPerSecond;
constexpr std::int64_t kFirstGregorianDay = -141427;  // 1582-10-15
constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

/// Days since 1970-01-01 (Gregorian) of a Julian date.
std::int64_t days_from_julian(std::int64_t year, int month, int day) {
  const std::int64_t a = (14 - month) / 12, y = year + 4800 - a, m = month + 12 * a - 3;
  return day + (153 * m + 2) / 5 + 365 * y + floor_divide<std::int64_t>(y, 4) - 32083 - 2440588;
}

/// The inverse, as in E. G. Richards, "Calendars" (2013), for any day.
Date julian_from_days(std::int64_t days) {
  const std::int64_t since = days + 2440588 + 32082;  // days since -4800-03-01
  const std::int64_t cycle = floor_divide<std::int64_t>(since, 1461),
                     of_cycle = since - cycle * 1461;
  const std::int64_t of_years = std::min<std::int64_t>(of_cycle / 365, 3);
  const std::int64_t of_year = of_cycle - of_years * 365;
  const std::int64_t m = (5 * of_year + 2) / 153;
  Date date;
  date.day = static_cast<int>(of_year - (153 * m + 2) / 5 + 1);
  date.month = static_cast<int>(m < 10 ? m + 3 : m - 9);
  date.year = cycle * 4 + of_years - 4800 + (date.month <= 2 ? 1 : 0);
  return date;
}

/// For the calendars whose years are all alike.
int year_length(Calendar calendar) {
  return calendar == Calendar::noleap ? 365 : calendar == Calendar::all_leap ? 366 : 360;
}

bool has_equal_years(Calendar calendar) {
  return calendar == Calendar::noleap || calendar == Calendar::all_leap ||
         calendar == Calendar::days_360;
}

bool is_julian(Calendar calendar, const Date& date) {
  if (calendar == Calendar::julian) return true;
  return calendar == Calendar::standard &&
         std::tuple(date.year, date.month, date.day) < std::tuple(1582, 10, 15);
}

}  // namespace

std::optional<Calendar> parse_calendar(std::string_view name) {
  static constexpr std::pair<std::string_view, Calendar> kNames[] = {
      {"", Calendar::standard},          {"standard", Calendar::standard},
      {"gregorian", Calendar::standard}, {"proleptic_gregorian", Calendar::proleptic_gregorian},
      {"julian", Calendar::julian},      {"noleap", Calendar::noleap},
      {"365_day", Calendar::noleap},     {"all_leap", Calendar::all_leap},
      {"366_day", Calendar::all_leap},   {"360_day", Calendar::days_360}};
  const std::string lower = to_lower(std::string(name));
  for (const auto& [known, calendar] : kNames)
    if (lower == known) return calendar;
  return std::nullopt;
}

std::string_view calendar_name(Calendar calendar) {
  switch (calendar) {
    case Calendar::standard:
      return "standard";
    case Calendar::proleptic_gregorian:
      return "proleptic_gregorian";
    case Calendar::julian:
      return "julian";
    case Calendar::noleap:
      return "noleap";
    case Calendar::all_leap:
      return "all_leap";
    case Calendar::days_360:
      return "360_day";
  }
  return "";
}

bool is_gregorian(Calendar calendar) {
  return calendar == Calendar::standard || calendar == Calendar::proleptic_gregorian;
}

std::int64_t days_from_civil(std::int64_t year, int month, int day) {
  // H. Hinnant, "chrono-compatible low-level date algorithms".
  year -= month <= 2;
  const std::int64_t era = (year >= 0 ? year : year - 399) / 400;
  const std::int64_t yoe = year - era * 400;
  const std::int64_t doy = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

void civil_from_days(std::int64_t days, std::int64_t& year, int& month, int& day) {
  // Whole eras of 400 years first: `days` may be as large as it can.
  const std::int64_t eras = days / 146097, rest = days % 146097 + 719468;  // at least 573372
  const std::int64_t era = eras + rest / 146097;
  const std::int64_t doe = rest % 146097;
  const std::int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
  const std::int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
  const std::int64_t mp = (5 * doy + 2) / 153;
  day = static_cast<int>(doy - (153 * mp + 2) / 5 + 1);
  month = static_cast<int>(mp < 10 ? mp + 3 : mp - 9);
  year = yoe + era * 400 + (month <= 2);
}

int days_in_month(Calendar calendar, std::int64_t year, int month) {
  if (calendar == Calendar::days_360) return 30;
  const bool every_fourth =
      calendar == Calendar::julian || (calendar == Calendar::standard && year < 1582);
  const bool leap =
      calendar == Calendar::all_leap || (calendar != Calendar::noleap && year % 4 == 0 &&
                                         (every_fourth || year % 100 != 0 || year % 400 == 0));
  return kDays[month - 1] + (month == 2 && leap ? 1 : 0);
}

bool is_date(Calendar calendar, const Date& date) {
  if (date.month < 1 || date.month > 12 || date.day < 1) return false;
  if (calendar == Calendar::standard && date.year == 1582 && date.month == 10 && date.day > 4 &&
      date.day < 15)
    return false;
  return date.day <= days_in_month(calendar, date.year, date.month);
}

std::int64_t days_from_date(Calendar calendar, const Date& date) {
  if (has_equal_years(calendar)) {
    std::int64_t days = (date.year - 1970) * year_length(calendar) + date.day - 1;
    for (int month = 1; month < date.month; ++month)
      days += days_in_month(calendar, date.year, month);
    return days;
  }
  if (!is_julian(calendar, date)) return days_from_civil(date.year, date.month, date.day);
  const std::int64_t days = days_from_julian(date.year, date.month, date.day);
  // A Julian year begins 13 days after the Gregorian one in 1970.
  return calendar == Calendar::julian ? days - days_from_julian(1970, 1, 1) : days;
}

Date date_from_days(Calendar calendar, std::int64_t days) {
  Date date;
  if (has_equal_years(calendar)) {
    const std::int64_t years = floor_divide<std::int64_t>(days, year_length(calendar));
    std::int64_t rest = days - years * year_length(calendar);
    date.year = 1970 + years;
    for (date.month = 1; rest >= days_in_month(calendar, date.year, date.month); ++date.month)
      rest -= days_in_month(calendar, date.year, date.month);
    date.day = static_cast<int>(rest) + 1;
    return date;
  }
  if (calendar == Calendar::julian) return julian_from_days(days + days_from_julian(1970, 1, 1));
  if (calendar == Calendar::standard && days < kFirstGregorianDay) return julian_from_days(days);
  civil_from_days(days, date.year, date.month, date.day);
  return date;
}

int day_of_year(Calendar calendar, std::int64_t days) {
  // Counts like cftime: also in 1582, as if no days were missing.
  const Date date = date_from_days(calendar, days);
  int day = date.day;
  for (int month = 1; month < date.month; ++month) day += days_in_month(calendar, date.year, month);
  return day;
}

std::optional<Moment> moment_of(__int128 nanoseconds) {
  constexpr __int128 kFarthest = kFarthestDay * kNanosecondsPerDay;
  if (nanoseconds > kFarthest || nanoseconds < -kFarthest) return std::nullopt;
  __int128 days = nanoseconds / kNanosecondsPerDay, of_day = nanoseconds % kNanosecondsPerDay;
  if (of_day < 0) {
    of_day += kNanosecondsPerDay;
    --days;
  }
  return Moment{static_cast<std::int64_t>(days), static_cast<std::int64_t>(of_day)};
}

std::string format_moment(Calendar calendar, std::optional<__int128> nanoseconds) {
  const std::optional<Moment> moment = nanoseconds ? moment_of(*nanoseconds) : std::nullopt;
  if (!moment) return "NaT";
  const Date date = date_from_days(calendar, moment->days);
  const std::int64_t seconds = moment->of_day / kNanosecondsPerSecond,
                     rest = moment->of_day % kNanosecondsPerSecond;
  std::string text = fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", date.year, date.month,
                                 date.day, seconds / 3600, seconds / 60 % 60, seconds % 60);
  if (rest != 0) {
    std::string digits = fmt::format("{:09}", rest);
    while (digits.back() == '0') digits.pop_back();
    text += "." + digits;
  }
  return text;
}

}  // namespace batchfs
