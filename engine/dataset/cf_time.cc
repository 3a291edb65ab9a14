#include "engine/dataset/cf_time.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include "engine/base/strings.h"

namespace batchfs {

namespace {

/// xarray leaves dates of other years to cftime.
constexpr std::int64_t kFirstPandasYear = 1678, kLastPandasYear = 2261;

/// Reads a number from the front of `text`, with a sign only if that is allowed.
std::optional<std::int64_t> take_number(std::string_view& text, bool with_sign = false) {
  if (!with_sign && text.starts_with('-')) return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

bool take(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

std::size_t digits_of(std::string_view text) {
  return std::min(text.find_first_not_of("0123456789"), text.size());
}

/// One or two digits; -1 for anything else.
std::int64_t take_short(std::string_view& text) {
  return digits_of(text) > 2 ? -1 : take_number(text).value_or(-1);
}

void skip_spaces(std::string_view& text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())))
    text.remove_prefix(1);
}

std::string_view take_word(std::string_view& text) {
  const auto is_letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
  const auto end = std::find_if_not(text.begin(), text.end(), is_letter);
  const std::string_view word = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  text.remove_prefix(word.size());
  return word;
}

/// The number of "January" or "Jan"; 0 for other words.
int month_of(std::string_view word) {
  static constexpr std::string_view kMonths[] = {"january",   "february", "march",    "april",
                                                 "may",       "june",     "july",     "august",
                                                 "september", "october",  "november", "december"};
  const std::string lower = to_lower(std::string(word));
  for (int i = 0; i < 12; ++i)
    if (lower == kMonths[i] || lower == kMonths[i].substr(0, 3)) return i + 1;
  return lower == "sept" ? 9 : 0;
}

/// "Jan 31, 2000", "31 January 2000", "31-Jan-2000" or "2000-Jan-31"; nullopt for other texts, which
/// stay.
std::optional<Date> take_date_with_month_name(std::string_view& text, Calendar calendar) {
  std::string_view rest = text;
  std::optional<std::int64_t> numbers[2];
  int month = 0;
  for (int at = 0, number = 0; at < 3; ++at) {
    if (at > 0) {
      take(rest, ',');
      if (!take(rest, '-')) skip_spaces(rest);
    }
    if (month == 0 && at < 2)
      if (const std::string_view word = take_word(rest); !word.empty()) {
        month = month_of(word);
        if (month == 0) return std::nullopt;
        continue;
      }
    // The year has four digits, the day one or two.
    const std::size_t digits = digits_of(rest);
    if (number == 2 || (digits != 1 && digits != 2 && digits != 4)) return std::nullopt;
    numbers[number++] = (digits == 4 ? 1 : -1) * *take_number(rest);
  }
  if (month == 0 || !numbers[1] || (*numbers[0] > 0) == (*numbers[1] > 0)) return std::nullopt;
  const Date date{std::max(*numbers[0], *numbers[1]), month,
                  static_cast<int>(-std::min(*numbers[0], *numbers[1]))};
  // cftime does not know names of months.
  if (date.year < kFirstPandasYear || date.year > kLastPandasYear || date.day < 1 ||
      !is_date(calendar, date))
    return std::nullopt;
  text = rest;
  return date;
}

/// "2000-01-31", "2000/01/31", "20000131", or without day and month; of the calendar.
std::optional<Date> take_date(std::string_view& text, Calendar calendar) {
  Date date{0, 1, 1};
  const std::size_t digits = digits_of(text);
  const auto year = take_number(text, true);
  if (!year) return std::nullopt;
  date.year = *year;
  std::int64_t month = 1, day = 1;
  const char separator = digits == 4 && text.starts_with('/') ? '/' : '-';
  if (digits == 8) {
    date.year = *year / 10000;
    month = *year / 100 % 100;
    day = *year % 100;
  } else if (take(text, separator)) {
    month = take_short(text);
    if (take(text, separator)) day = take_short(text);
  }
  if (date.year < -100000 || date.year > 100000 || month < 1 || month > 12 || day < 1 || day > 31)
    return std::nullopt;
  // cftime does so: in these calendars the year 1 follows the year -1.
  if (calendar == Calendar::standard || calendar == Calendar::julian) {
    if (date.year == 0) return std::nullopt;
    if (date.year < 0) ++date.year;
  }
  date.month = static_cast<int>(month);
  date.day = static_cast<int>(day);
  return is_date(calendar, date) ? std::optional(date) : std::nullopt;
}

/// "+5", "-06:00", "+0530" in minutes; nullopt for other texts.
std::optional<std::int64_t> take_offset(std::string_view& text) {
  const bool west = text.front() == '-';
  text.remove_prefix(1);
  const std::size_t digits = digits_of(text);
  std::int64_t hours = take_number(text).value_or(-1), minutes = 0;
  if (digits == 4) {
    minutes = hours % 100;
    hours /= 100;
  } else if (digits > 2) {
    return std::nullopt;
  } else if (take(text, ':')) {
    minutes = take_number(text).value_or(-1);
  }
  if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59) return std::nullopt;
  return (hours * 60 + minutes) * (west ? -1 : 1);
}

/// How a date and its time of day are written. Readers agree on some combinations only.
struct Writing {
  bool is_dashed = false;  // "2000-01-31"
  bool is_full = false;    // year, month and day
  /// cftime reads it for xarray: the calendar is another one, or pandas does not have the year.
  bool is_for_cftime = false;
  std::size_t hour_digits = 0;  // 0: no time of day
  bool has_minutes = false;
};

Writing writing_of(std::string_view text, const Date& date, bool has_name, Calendar calendar) {
  if (text.starts_with('-')) text.remove_prefix(1);
  Writing writing;
  writing.is_dashed = !has_name && std::count(text.begin(), text.end(), '-') == 2;
  writing.is_full = has_name || writing.is_dashed || digits_of(text) == 8 ||
                    std::count(text.begin(), text.end(), '/') == 2;
  writing.is_for_cftime =
      !is_gregorian(calendar) || date.year < kFirstPandasYear || date.year > kLastPandasYear;
  return writing;
}

struct Clock {
  std::int64_t hour = 0, minute = 0, second = 0, nanoseconds = 0;
  bool exists() const {
    return hour >= 0 && hour < 24 && minute >= 0 && minute < 60 && second >= 0 && second < 60;
  }
};

Clock take_clock(std::string_view& text, Writing& writing) {
  Clock clock;
  writing.hour_digits = digits_of(text);
  if (writing.hour_digits == 0) return clock;
  clock.hour = take_short(text);
  writing.has_minutes = take(text, ':');
  if (!writing.has_minutes) return clock;
  clock.minute = take_short(text);
  if (!take(text, ':')) return clock;
  clock.second = take_short(text);
  if (!take(text, '.')) return clock;
  std::int64_t digit = kNanosecondsPerSecond / 10;
  for (std::size_t digits = digits_of(text); digits > 0; --digits, text.remove_prefix(1)) {
    clock.nanoseconds += (text.front() - '0') * digit;
    digit /= 10;
  }
  return clock;
}

/// An hour without minutes: some read it as a day or a month, or ignore it.
bool is_clear_clock(const Writing& writing) {
  const bool is_hour = writing.hour_digits > 0 && !writing.has_minutes;
  return !is_hour || (writing.is_full && writing.hour_digits == 2 && !writing.is_for_cftime);
}

bool is_clear_zone(const Writing& writing, std::string_view zone) {
  const bool is_word = zone.front() != '+' && zone.front() != '-';
  if (writing.hour_digits == 0)  // some read an offset as the time of day
    return writing.is_dashed &&
           (is_word || zone.find_first_not_of("+-0:") == std::string_view::npos);
  const bool is_usual = !is_word || zone == "UTC" || zone == "GMT" || zone == "Z" || zone == "z";
  if (!writing.has_minutes || !writing.is_dashed) return is_usual;
  return is_word || !writing.is_for_cftime || digits_of(zone.substr(1)) != 1;
}

/// A time of day of zeros alone, however it is written: "00.00.00", "00:00:00 00:00". Readers
/// disagree on what other digits mean there, and agree on these.
bool is_midnight(std::string_view text, const Writing& writing) {
  if (!text.starts_with('0') || text.find_first_not_of("0:. ") != std::string_view::npos)
    return false;
  return writing.is_dashed ||
         (writing.is_full && text.size() > 1 && text.find('.') == std::string_view::npos);
}

std::optional<std::int64_t> pandas_unit_nanoseconds(const std::string& unit) {
  static constexpr std::pair<std::string_view, std::int64_t> kUnits[] = {
      {"nanosecond", 1},
      {"microsecond", 1'000},
      {"millisecond", 1'000'000},
      {"second", kNanosecondsPerSecond},
      {"minute", 60 * kNanosecondsPerSecond},
      {"hour", 3600 * kNanosecondsPerSecond},
      {"day", 86400 * kNanosecondsPerSecond}};
  std::string name = to_lower(unit);
  if (name.ends_with('s')) name.pop_back();
  for (const auto& [known, ns] : kUnits)
    if (name == known) return ns;
  return std::nullopt;
}

/// Nanoseconds in a unit that cftime knows by a short name.
std::optional<std::int64_t> cftime_unit_nanoseconds(const std::string& unit) {
  static constexpr std::pair<std::string_view, std::int64_t> kShort[] = {
      {"h", 3600 * kNanosecondsPerSecond},
      {"hr", 3600 * kNanosecondsPerSecond},
      {"d", 86400 * kNanosecondsPerSecond},
      {"min", 60 * kNanosecondsPerSecond},
      {"sec", kNanosecondsPerSecond},
      {"msec", 1'000'000},
      {"millisec", 1'000'000},
      {"microsec", 1'000}};
  const std::string lower = to_lower(unit);
  if (lower == "s") return kNanosecondsPerSecond;
  if (lower == "ms") return 1'000'000;
  const std::string name = lower.substr(0, lower.size() - (lower.ends_with('s') ? 1 : 0));
  for (const auto& [known, ns] : kShort)
    if (name == known) return ns;
  return std::nullopt;
}

bool is_in_datetime64_ns(std::int64_t seconds, std::int64_t nanoseconds) {
  const __int128 time = static_cast<__int128>(seconds) * kNanosecondsPerSecond + nanoseconds;
  return time <= INT64_MAX && time > INT64_MIN;
}

}  // namespace

std::optional<__int128> cftime_nanoseconds(long double counts, std::int64_t step_ns) {
  constexpr std::int64_t kMicrosecond = 1000, kSecond = 1'000'000;  // in microseconds
  if (!(std::fabs(counts) < 1e30L / static_cast<long double>(step_ns))) return std::nullopt;
  if (step_ns < kMicrosecond)  // which cftime does not have
    return static_cast<__int128>(std::rint(counts * static_cast<long double>(step_ns)));
  const long double exact = static_cast<long double>(step_ns / kMicrosecond) * counts;
  auto rounded = static_cast<__int128>(std::rint(exact));
  const auto of_second = [&rounded] { return (rounded % kSecond + kSecond) % kSecond; };
  if (step_ns >= kNanosecondsPerSecond) {
    if (of_second() == 1) rounded = static_cast<__int128>(std::floor(exact));
    if (of_second() == kSecond - 1) rounded = static_cast<__int128>(std::ceil(exact));
  }
  return rounded * kMicrosecond;
}

std::optional<std::int64_t> time_unit_nanoseconds(const std::string& unit) {
  const auto ns = pandas_unit_nanoseconds(unit);
  return ns ? ns : cftime_unit_nanoseconds(unit);
}

std::optional<std::int64_t> resolution_nanoseconds(const std::string& unit) {
  if (unit == "s") return kNanosecondsPerSecond;
  if (unit == "ms") return 1'000'000;
  if (unit == "us") return 1'000;
  if (unit == "ns") return 1;
  return std::nullopt;
}

bool is_time_units(const std::string& units) {
  return parse_time_units(units, "proleptic_gregorian").has_value();
}

std::optional<TimeReference> parse_time_units(const std::string& units,
                                              const std::string& calendar) {
  const std::optional<Calendar> known = parse_calendar(calendar);
  if (!known) return std::nullopt;
  const std::size_t since = to_lower(units).find(" since ");
  if (since == std::string::npos) return std::nullopt;
  std::string unit = units.substr(0, since);
  unit.erase(
      std::remove_if(unit.begin(), unit.end(), [](unsigned char c) { return std::isspace(c); }),
      unit.end());
  auto step = time_unit_nanoseconds(unit);
  // Months have a fixed length in one calendar.
  if (!step && *known == Calendar::days_360 &&
      (to_lower(unit) == "month" || to_lower(unit) == "months"))
    step = 30 * 86400 * kNanosecondsPerSecond;
  if (!step) return std::nullopt;
  std::string_view text(units);
  text.remove_prefix(since + 7);
  skip_spaces(text);
  const std::string_view moment = text;
  std::optional<Date> date;
  if (is_gregorian(*known)) date = take_date_with_month_name(text, *known);
  const bool has_name = date.has_value();
  if (!date) date = take_date(text, *known);
  if (!date) return std::nullopt;
  Writing writing =
      writing_of(moment.substr(0, moment.size() - text.size()), *date, has_name, *known);
  if (digits_of(text) > 0) return std::nullopt;
  if (!text.empty() && (text.front() == 'T' || text.front() == 't')) text.remove_prefix(1);
  skip_spaces(text);
  if (!has_name && is_midnight(text, writing)) text = {};
  const Clock clock = take_clock(text, writing);
  std::int64_t shift = 0;
  skip_spaces(text);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
    text.remove_suffix(1);
  if (!is_clear_clock(writing) || (!text.empty() && !is_clear_zone(writing, text)))
    return std::nullopt;
  if (to_lower(std::string(text)) == "utc" || to_lower(std::string(text)) == "z" ||
      to_lower(std::string(text)) == "gmt")
    text = {};
  if (!text.empty() && (text.front() == '+' || text.front() == '-')) {
    const auto minutes = take_offset(text);
    if (!minutes) return std::nullopt;
    shift = *minutes * 60;
  }
  if (!text.empty() || !clock.exists()) return std::nullopt;
  const std::int64_t days = days_from_date(*known, *date);
  const std::int64_t seconds = clock.hour * 3600 + clock.minute * 60 + clock.second - shift;
  const std::int64_t origin = days * 86400 + seconds;
  return TimeReference{
      *step, origin, clock.nanoseconds, *known,
      !pandas_unit_nanoseconds(unit) || !is_in_datetime64_ns(origin, clock.nanoseconds)};
}

}  // namespace batchfs
