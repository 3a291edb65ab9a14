#include "engine/dataset/cf_time.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <string_view>
#include <utility>

#include "engine/base/strings.h"
#include "engine/dataset/cf.h"

namespace batchfs {

namespace {

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

void skip_spaces(std::string_view& text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())))
    text.remove_prefix(1);
}

/// Days since 1970-01-01 of a Julian calendar date.
std::int64_t days_from_julian(std::int64_t year, int month, int day) {
  const std::int64_t a = (14 - month) / 12, y = year + 4800 - a, m = month + 12 * a - 3;
  const std::int64_t floor4 = y >= 0 ? y / 4 : (y - 3) / 4;
  return day + (153 * m + 2) / 5 + 365 * y + floor4 - 32083 - 2440588;
}

int days_in_month(std::int64_t year, int month, bool julian) {
  static constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = year % 4 == 0 && (julian || year % 100 != 0 || year % 400 == 0);
  return kDays[month - 1] + (month == 2 && leap ? 1 : 0);
}

}  // namespace

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

std::optional<std::int64_t> time_unit_nanoseconds(const std::string& unit) {
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
  // cftime's short names.
  static constexpr std::pair<std::string_view, std::int64_t> kShort[] = {
      {"h", 3600 * kNanosecondsPerSecond},
      {"hr", 3600 * kNanosecondsPerSecond},
      {"d", 86400 * kNanosecondsPerSecond},
      {"min", 60 * kNanosecondsPerSecond},
      {"sec", kNanosecondsPerSecond},
      {"msec", 1'000'000},
      {"millisec", 1'000'000},
      {"microsec", 1'000}};
  for (const auto& [known, ns] : kShort)
    if (name == known) return ns;
  if (to_lower(unit) == "s") return kNanosecondsPerSecond;
  return std::nullopt;
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
  const bool standard = calendar.empty() || calendar == "standard" || calendar == "gregorian";
  if (!standard && calendar != "proleptic_gregorian") return std::nullopt;
  const std::size_t since = to_lower(units).find(" since ");
  if (since == std::string::npos) return std::nullopt;
  std::string unit = units.substr(0, since);
  unit.erase(
      std::remove_if(unit.begin(), unit.end(), [](unsigned char c) { return std::isspace(c); }),
      unit.end());
  const auto step = time_unit_nanoseconds(unit);
  if (!step) return std::nullopt;
  std::string_view text(units);
  text.remove_prefix(since + 7);
  skip_spaces(text);
  const auto year = take_number(text, true);
  if (!year || *year < -100000 || *year > 100000) return std::nullopt;
  std::int64_t month = 1, day = 1, hour = 0, minute = 0, second = 0, nanoseconds = 0, shift = 0;
  if (take(text, '-')) {
    const auto m = take_number(text);
    if (!m || *m < 1 || *m > 12) return std::nullopt;
    month = *m;
    if (take(text, '-')) {
      const auto d = take_number(text);
      if (!d || *d < 1 || *d > 31) return std::nullopt;
      day = *d;
    }
  }
  if (!text.empty() && (text.front() == 'T' || text.front() == 't')) text.remove_prefix(1);
  skip_spaces(text);
  if (!text.empty() && std::isdigit(static_cast<unsigned char>(text.front()))) {
    hour = take_number(text).value_or(-1);
    if (take(text, ':')) {
      minute = take_number(text).value_or(-1);
      if (take(text, ':')) {
        second = take_number(text).value_or(-1);
        if (take(text, '.')) {
          std::int64_t digit = kNanosecondsPerSecond / 10;
          for (; !text.empty() && std::isdigit(static_cast<unsigned char>(text.front()));
               text.remove_prefix(1)) {
            nanoseconds += (text.front() - '0') * digit;
            digit /= 10;
          }
        }
      }
    }
  }
  skip_spaces(text);
  if (to_lower(std::string(text)) == "utc" || to_lower(std::string(text)) == "z" ||
      to_lower(std::string(text)) == "gmt")
    text = {};
  if (!text.empty() && (text.front() == '+' || text.front() == '-')) {
    const bool west = text.front() == '-';
    text.remove_prefix(1);
    std::int64_t hours = take_number(text).value_or(-1), minutes = 0;
    if (take(text, ':'))
      minutes = take_number(text).value_or(-1);
    else if (hours >= 100) {  // +0530
      minutes = hours % 100;
      hours /= 100;
    }
    if (hours < 0 || hours > 24 || minutes < 0 || minutes > 59) return std::nullopt;
    shift = (hours * 60 + minutes) * 60 * (west ? -1 : 1);
  }
  skip_spaces(text);
  if (!text.empty() || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 ||
      second > 59)
    return std::nullopt;
  const bool julian =
      standard && (*year < 1582 || (*year == 1582 && (month < 10 || (month == 10 && day < 15))));
  if (day > days_in_month(*year, static_cast<int>(month), julian)) return std::nullopt;
  const std::int64_t days =
      julian ? days_from_julian(*year, static_cast<int>(month), static_cast<int>(day))
             : days_from_civil(*year, static_cast<int>(month), static_cast<int>(day));
  return TimeReference{*step, days * 86400 + hour * 3600 + minute * 60 + second - shift,
                       nanoseconds};
}

}  // namespace batchfs
