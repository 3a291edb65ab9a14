#include "engine/view/samples/duration.h"

#include <charconv>
#include <utility>

#include <fmt/format.h>

namespace batchfs {

namespace {

struct Unit {
  std::string_view name;
  std::int64_t months, nanoseconds;
};

constexpr std::int64_t kSecond = 1'000'000'000;

/// The first ones of a length are those that texts are written in, largest first.
constexpr Unit kUnits[] = {{"y", 12, 0},
                           {"mo", 1, 0},
                           {"w", 0, 604800 * kSecond},
                           {"d", 0, 86400 * kSecond},
                           {"h", 0, 3600 * kSecond},
                           {"min", 0, 60 * kSecond},
                           {"s", 0, kSecond},
                           {"ms", 0, 1'000'000},
                           {"us", 0, 1'000},
                           {"ns", 0, 1},
                           {"W", 0, 604800 * kSecond},
                           {"D", 0, 86400 * kSecond},
                           {"m", 0, 60 * kSecond}};

constexpr std::int64_t kMaxMonths = 1'200'000;

}  // namespace

std::optional<Duration> parse_duration(std::string_view text) {
  std::int64_t count = 0;
  const char* const end = text.data() + text.size();
  const bool plus = text.size() > 1 && text[0] == '+' && text[1] != '-';
  const auto [rest, failed] = std::from_chars(text.data() + (plus ? 1 : 0), end, count);
  if (failed != std::errc()) return std::nullopt;
  const std::string_view name(rest, static_cast<std::size_t>(end - rest));
  for (const Unit& unit : kUnits) {
    if (unit.name != name) continue;
    Duration duration;
    if (__builtin_mul_overflow(count, unit.months, &duration.months) ||
        __builtin_mul_overflow(count, unit.nanoseconds, &duration.nanoseconds) ||
        duration.months > kMaxMonths || duration.months < -kMaxMonths ||
        duration.nanoseconds == INT64_MIN)
      return std::nullopt;
    return duration;
  }
  return std::nullopt;
}

Duration read_duration(const JsonRef& json) {
  constexpr std::string_view kForms = "write 6h, -30min, 1d, 1mo or 1y";
  if (!json.is_string())
    throw json.error(fmt::format("expected a length of time, a string; {}", kForms));
  if (const auto duration = parse_duration(json.string())) return *duration;
  throw json.error(fmt::format("'{}' is no length of time; {}", json.string(), kForms));
}

std::string duration_text(const Duration& duration) {
  if (duration.is_zero()) return "0h";
  for (const Unit& unit : kUnits) {
    if (duration.months != 0 && unit.months != 0 && duration.months % unit.months == 0)
      return fmt::format("{}{}", duration.months / unit.months, unit.name);
    // Weeks are rarely meant where seven days stand.
    if (duration.nanoseconds != 0 && unit.nanoseconds != 0 && unit.name != "w" &&
        duration.nanoseconds % unit.nanoseconds == 0)
      return fmt::format("{}{}", duration.nanoseconds / unit.nanoseconds, unit.name);
  }
  return "";
}

}  // namespace batchfs
