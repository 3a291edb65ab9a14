#include "engine/dataset/labels.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "engine/base/utf8.h"
#include "engine/dataset/cf_time.h"
#include "engine/dataset/length_of_time.h"

namespace batchfs {

namespace {

/// Two digits after a separator.
bool take_two(std::string_view& text, std::string_view separators, int low, int high, int& out) {
  if (text.size() < 3 || separators.find(text[0]) == std::string_view::npos) return false;
  if (!std::isdigit(static_cast<unsigned char>(text[1])) ||
      !std::isdigit(static_cast<unsigned char>(text[2])))
    return false;
  out = (text[1] - '0') * 10 + (text[2] - '0');
  if (out < low || out > high) return false;
  text.remove_prefix(3);
  return true;
}

}  // namespace

std::optional<DateText> parse_date_text(const std::string& input) {
  std::string_view text(input);
  constexpr std::string_view kUtc = "+00:00";  // after a time of day
  if (!text.empty() && (text.back() == 'Z' || text.back() == 'z'))
    text.remove_suffix(1);
  else if (text.ends_with(kUtc) && text.find(':') < text.size() - 3)
    text.remove_suffix(kUtc.size());
  DateText result;
  if (text.size() < 4 || text.front() == '-') return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + 4, result.date.year);
  if (error != std::errc() || end != text.data() + 4) return std::nullopt;
  text.remove_prefix(4);
  int hour = 0, minute = 0, second = 0;
  const struct {
    std::string_view separators;
    int low, high;
    int* part;
  } parts[] = {{"-", 1, 12, &result.date.month},
               {"-", 1, 31, &result.date.day},
               {"T t", 0, 23, &hour},
               {":", 0, 59, &minute},
               {":", 0, 59, &second}};
  for (const auto& part : parts) {
    if (text.empty()) break;
    if (!take_two(text, part.separators, part.low, part.high, *part.part)) return std::nullopt;
    ++result.level;
  }
  result.of_day = (hour * 3600 + minute * 60 + second) * kNanosecondsPerSecond;
  if (text.empty()) return result;
  if (text.size() < 2 || text[0] != '.' || text.size() > 10) return std::nullopt;
  std::int64_t digit = kNanosecondsPerSecond / 10;
  for (char c : text.substr(1)) {
    if (c < '0' || c > '9') return std::nullopt;
    result.of_day += (c - '0') * digit;
    digit /= 10;
  }
  return result;
}

std::optional<DateRange> parse_date(const std::string& input, Calendar calendar) {
  const std::optional<DateText> text = parse_date_text(input);
  if (!text || !is_date(calendar, text->date)) return std::nullopt;
  constexpr __int128 kDay = static_cast<__int128>(86400) * kNanosecondsPerSecond;
  const Date& date = text->date;
  const __int128 first = days_from_date(calendar, date) * kDay + text->of_day;
  __int128 next = first + 1;
  switch (text->level) {
    case 0:
      next = days_from_date(calendar, {date.year + 1, 1, 1}) * kDay;
      break;
    case 1:
      next = days_from_date(calendar, date.month == 12 ? Date{date.year + 1, 1, 1}
                                                       : Date{date.year, date.month + 1, 1}) *
             kDay;
      break;
    case 2:
      next = first + kDay;
      break;
    case 3:
      next = first + kDay / 24;
      break;
    case 4:
      next = first + kDay / 1440;
      break;
    default:
      break;
  }
  return DateRange{first, next - 1, text->level};
}

std::optional<std::int64_t> unit_nanoseconds(const DataType& type) {
  static constexpr std::pair<std::string_view, std::int64_t> kUnits[] = {
      {"W", 604800 * kNanosecondsPerSecond},
      {"D", 86400 * kNanosecondsPerSecond},
      {"h", 3600 * kNanosecondsPerSecond},
      {"m", 60 * kNanosecondsPerSecond},
      {"s", kNanosecondsPerSecond},
      {"ms", 1'000'000},
      {"us", 1'000},
      {"ns", 1}};
  for (const auto& [name, nanoseconds] : kUnits) {
    std::int64_t all = 0;
    if (type.unit == name &&
        !__builtin_mul_overflow(nanoseconds, std::int64_t{type.multiplier}, &all))
      return all;
  }
  return std::nullopt;
}

std::optional<__int128> time_nanoseconds(std::int64_t count, const DataType& type) {
  if (count == INT64_MIN) return std::nullopt;
  if (const auto unit = unit_nanoseconds(type)) return static_cast<__int128>(count) * *unit;
  if (type.unit != "Y" && type.unit != "M")
    throw Error(
        ErrorCode::not_supported,
        fmt::format("times of type {} have no labels; use positions, as in '#0:#4'", type.name()));
  constexpr __int128 kFar = 12'000'000;  // months
  const __int128 months = std::clamp<__int128>(
      static_cast<__int128>(count) * type.multiplier * (type.unit == "Y" ? 12 : 1), -kFar, kFar);
  const auto since_0 = static_cast<std::int64_t>(months) + 1970 * 12;
  const std::int64_t year = since_0 >= 0 ? since_0 / 12 : (since_0 - 11) / 12;
  return static_cast<__int128>(
             days_from_civil(year, static_cast<int>(since_0 - year * 12) + 1, 1)) *
         86400 * kNanosecondsPerSecond;
}

std::string format_time(std::int64_t count, const DataType& type) {
  if (count == INT64_MIN) return "NaT";
  if (type.unit != "Y" && type.unit != "M" && !unit_nanoseconds(type)) return std::to_string(count);
  const __int128 time = *time_nanoseconds(count, type);
  // Nobody means a date so far away.
  if (!moment_of(time)) return std::to_string(count);
  return format_moment(Calendar::proleptic_gregorian, time);
}

std::optional<TimeAxis> TimeAxis::of(const Dataset::Index& index) {
  const DataType& type = index.values.type;
  TimeAxis axis(index);
  if (type.kind == Kind::datetime) return axis;
  if (!index.cf.counts_from || !(type.is_integer() || type.is_float())) return std::nullopt;
  axis.calendar_ = index.cf.counts_from->calendar;
  return axis;
}

std::optional<__int128> TimeAxis::nanoseconds(std::int64_t i) const {
  const NdArray& values = index_->values;
  if (values.type.kind == Kind::datetime)
    return time_nanoseconds(label_count(values, i), values.type);
  const TimeReference& from = *index_->cf.counts_from;
  const __int128 origin =
      static_cast<__int128>(from.seconds) * kNanosecondsPerSecond + from.nanoseconds;
  if (values.type.is_integer() && values.type.itemsize == 8) {
    if (values.type.kind == Kind::signed_int && label_count(values, i) == INT64_MIN)
      return std::nullopt;
    return origin + static_cast<__int128>(label_number(values, i)) * from.step_ns;
  }
  const auto since = cftime_nanoseconds(label_number(values, i), from.step_ns);
  return since ? std::optional(origin + *since) : std::nullopt;
}

std::string TimeAxis::text(std::int64_t i) const {
  if (index_->values.type.kind == Kind::datetime) return label_text(index_->values, i);
  return format_moment(calendar_, nanoseconds(i));
}

std::string label_text(const NdArray& values, std::int64_t i) {
  const Json json = label_json(values, i);
  return json.is_string() ? json.get<std::string>() : json.dump();
}

std::string label_text(const Dataset::Index& index, std::int64_t i) {
  if (const auto times = TimeAxis::of(index)) return times->text(i);
  const DataType& type = index.values.type;
  const auto unit = type.kind == Kind::timedelta ? unit_nanoseconds(type) : std::nullopt;
  std::int64_t length = 0;
  if (unit && label_count(index.values, i) == INT64_MIN) return "NaT";
  if (unit && !__builtin_mul_overflow(label_count(index.values, i), *unit, &length))
    return length_text(length);
  return label_text(index.values, i);
}

Json label_json(const NdArray& values, std::int64_t i) {
  const std::byte* p = values.data.data() + static_cast<std::size_t>(i) * values.type.itemsize;
  switch (values.type.kind) {
    case Kind::boolean:
      return label_number(values, i) != 0;
    case Kind::signed_int:
      return static_cast<std::int64_t>(label_number(values, i));
    case Kind::unsigned_int:
      return static_cast<std::uint64_t>(label_number(values, i));
    case Kind::floating: {
      if (values.type.itemsize == 4) {
        // The shortest text of the float, not of its double.
        const float value = element_of<float>(values, i);
        if (!std::isfinite(value))
          return std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
        return std::strtod(fmt::format("{}", value).c_str(), nullptr);
      }
      const auto value = static_cast<double>(label_number(values, i));
      if (!std::isfinite(value))
        return std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
      return value;
    }
    case Kind::datetime:
      return format_time(label_count(values, i), values.type);
    case Kind::timedelta:
      return label_count(values, i);
    case Kind::bytes: {
      std::string text(reinterpret_cast<const char*>(p), values.type.itemsize);
      text.resize(text.find_last_not_of('\0') + 1);
      return text;
    }
    case Kind::unicode: {
      std::string text;
      for (std::uint32_t k = 0; k < values.type.itemsize / 4; ++k) {
        std::uint32_t c;
        std::memcpy(&c, p + 4 * k, 4);
        if (c == 0) break;
        append_utf8(text, c);
      }
      return text;
    }
    default:
      return nullptr;
  }
}

}  // namespace batchfs
