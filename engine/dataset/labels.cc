#include "engine/dataset/labels.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "engine/base/utf8.h"
#include "engine/dataset/cf_time.h"

namespace batchfs {

namespace {

template <class T>
T element(const NdArray& values, std::int64_t i) {
  T value;
  std::memcpy(&value, values.data.data() + static_cast<std::size_t>(i) * sizeof(T), sizeof value);
  return value;
}

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

std::optional<DateRange> parse_date(const std::string& input) {
  std::string_view text(input);
  if (!text.empty() && (text.back() == 'Z' || text.back() == 'z')) text.remove_suffix(1);
  std::int64_t year = 0;
  if (text.size() < 4 || text.front() == '-') return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + 4, year);
  if (error != std::errc() || end != text.data() + 4) return std::nullopt;
  text.remove_prefix(4);
  int month = 1, day = 1, hour = 0, minute = 0, second = 0;
  std::int64_t fraction = 0;
  int level = 0;  // how many of month, day, hour, minute, second were given
  if (!text.empty()) {
    if (!take_two(text, "-", 1, 12, month)) return std::nullopt;
    level = 1;
  }
  if (!text.empty()) {
    if (!take_two(text, "-", 1, 31, day)) return std::nullopt;
    level = 2;
  }
  if (!text.empty()) {
    if (!take_two(text, "T t", 0, 23, hour)) return std::nullopt;
    level = 3;
  }
  if (!text.empty()) {
    if (!take_two(text, ":", 0, 59, minute)) return std::nullopt;
    level = 4;
  }
  if (!text.empty()) {
    if (!take_two(text, ":", 0, 59, second)) return std::nullopt;
    level = 5;
  }
  if (!text.empty()) {
    if (text.size() < 2 || text[0] != '.' || text.size() > 10) return std::nullopt;
    std::int64_t digit = kNanosecondsPerSecond / 10;
    for (char c : text.substr(1)) {
      if (c < '0' || c > '9') return std::nullopt;
      fraction += (c - '0') * digit;
      digit /= 10;
    }
    level = 5;
  }
  std::int64_t y2 = year;
  int m2 = month, d2 = day;
  civil_from_days(days_from_civil(year, month, day), y2, m2, d2);
  if (y2 != year || m2 != month || d2 != day) return std::nullopt;  // 30 February
  const std::int64_t begin =
      days_from_civil(year, month, day) * 86400 + hour * 3600 + minute * 60 + second;
  std::int64_t next = begin;
  switch (level) {
    case 0:
      next = days_from_civil(year + 1, 1, 1) * 86400;
      break;
    case 1:
      next = days_from_civil(month == 12 ? year + 1 : year, month == 12 ? 1 : month + 1, 1) * 86400;
      break;
    case 2:
      next = begin + 86400;
      break;
    case 3:
      next = begin + 3600;
      break;
    case 4:
      next = begin + 60;
      break;
    default:
      break;
  }
  const __int128 first = static_cast<__int128>(begin) * kNanosecondsPerSecond + fraction;
  const __int128 last =
      level >= 5 ? first : static_cast<__int128>(next) * kNanosecondsPerSecond - 1;
  return DateRange{first, last, std::min(level, 5)};
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
  const __int128 whole = time / kNanosecondsPerSecond - (time % kNanosecondsPerSecond < 0 ? 1 : 0);
  const auto rest = static_cast<std::int64_t>(time - whole * kNanosecondsPerSecond);
  const auto days = static_cast<std::int64_t>(whole / 86400 - (whole % 86400 < 0 ? 1 : 0));
  const auto of_day = static_cast<std::int64_t>(whole - static_cast<__int128>(days) * 86400);
  std::int64_t year;
  int month, day;
  civil_from_days(days, year, month, day);
  std::string text = fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", year, month, day,
                                 of_day / 3600, of_day / 60 % 60, of_day % 60);
  if (rest != 0) {
    std::string digits = fmt::format("{:09}", rest);
    while (digits.back() == '0') digits.pop_back();
    text += "." + digits;
  }
  return text;
}

double label_number(const NdArray& values, std::int64_t i) {
  switch (values.type.kind) {
    case Kind::signed_int:
      switch (values.type.itemsize) {
        case 1:
          return element<std::int8_t>(values, i);
        case 2:
          return element<std::int16_t>(values, i);
        case 4:
          return element<std::int32_t>(values, i);
        default:
          return static_cast<double>(element<std::int64_t>(values, i));
      }
    case Kind::unsigned_int:
    case Kind::boolean:
      switch (values.type.itemsize) {
        case 1:
          return element<std::uint8_t>(values, i);
        case 2:
          return element<std::uint16_t>(values, i);
        case 4:
          return element<std::uint32_t>(values, i);
        default:
          return static_cast<double>(element<std::uint64_t>(values, i));
      }
    case Kind::floating:
      switch (values.type.itemsize) {
        case 2:
          return static_cast<double>(element<_Float16>(values, i));
        case 4:
          return element<float>(values, i);
        default:
          return element<double>(values, i);
      }
    case Kind::datetime:
    case Kind::timedelta:
      return static_cast<double>(label_count(values, i));
    default:
      throw Error(ErrorCode::not_supported, "values of type " + values.type.name() +
                                                " have no labels; use positions, as in '#0:#4'");
  }
}

std::int64_t label_count(const NdArray& values, std::int64_t i) {
  return element<std::int64_t>(values, i);
}

std::string label_text(const NdArray& values, std::int64_t i) {
  const Json json = label_json(values, i);
  return json.is_string() ? json.get<std::string>() : json.dump();
}

Json label_json(const NdArray& values, std::int64_t i) {
  const std::byte* p = values.data.data() + static_cast<std::size_t>(i) * values.type.itemsize;
  switch (values.type.kind) {
    case Kind::boolean:
      return label_number(values, i) != 0;
    case Kind::signed_int:
      return static_cast<std::int64_t>(values.type.itemsize == 8
                                           ? label_count(values, i)
                                           : static_cast<std::int64_t>(label_number(values, i)));
    case Kind::unsigned_int:
      return values.type.itemsize == 8 ? element<std::uint64_t>(values, i)
                                       : static_cast<std::uint64_t>(label_number(values, i));
    case Kind::floating: {
      if (values.type.itemsize == 4) {
        // The shortest text of the float, not of its double.
        const float value = element<float>(values, i);
        if (!std::isfinite(value))
          return std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
        return std::strtod(fmt::format("{}", value).c_str(), nullptr);
      }
      const double value = label_number(values, i);
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
