#include "engine/dataset/cf_time.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <string_view>
#include <utility>

#include "engine/base/strings.h"

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

}  // namespace

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
  const Date date{*year, static_cast<int>(month), static_cast<int>(day)};
  if (!is_date(*known, date)) return std::nullopt;
  const std::int64_t days = days_from_date(*known, date);
  return TimeReference{*step, days * 86400 + hour * 3600 + minute * 60 + second - shift,
                       nanoseconds, *known};
}

}  // namespace batchfs
