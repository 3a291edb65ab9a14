#include "engine/view/samples/duration.h"

#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "engine/dataset/length_of_time.h"

namespace batchfs {

namespace {

struct CalendarUnit {
  std::string_view name;
  std::int64_t months;
};

/// Largest first.
constexpr CalendarUnit kCalendarUnits[] = {{"y", 12}, {"mo", 1}};

constexpr std::int64_t kMaxMonths = 1'200'000;

}  // namespace

std::optional<Duration> parse_duration(std::string_view text) {
  std::int64_t count = 0;
  const char* const end = text.data() + text.size();
  const bool plus = text.size() > 1 && text[0] == '+' && text[1] != '-';
  const auto [rest, failed] = std::from_chars(text.data() + (plus ? 1 : 0), end, count);
  if (failed != std::errc()) return std::nullopt;
  const std::string_view name(rest, static_cast<std::size_t>(end - rest));
  Duration duration;
  if (const auto unit = length_unit(name)) {
    if (__builtin_mul_overflow(count, *unit, &duration.nanoseconds) ||
        duration.nanoseconds == INT64_MIN)
      return std::nullopt;
    return duration;
  }
  for (const CalendarUnit& unit : kCalendarUnits) {
    if (unit.name != name) continue;
    if (__builtin_mul_overflow(count, unit.months, &duration.months) ||
        duration.months > kMaxMonths || duration.months < -kMaxMonths)
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
  throw json.error(fmt::format("'{}' is not a length of time; {}", json.string(), kForms));
}

std::string duration_text(const Duration& duration) {
  for (const CalendarUnit& unit : kCalendarUnits)
    if (duration.months != 0 && duration.months % unit.months == 0)
      return fmt::format("{}{}", duration.months / unit.months, unit.name);
  return length_text(duration.nanoseconds);
}

}  // namespace batchfs
