#include "engine/dataset/calendar_fields.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/strings.h"
#include "engine/dataset/labels.h"

namespace batchfs {

namespace {

struct Known {
  CalendarField field;
  std::string_view name;
  std::int64_t low, high;
};
constexpr std::int64_t kMaxYear = 1'000'000'000;
constexpr Known kKnown[] = {{CalendarField::year, "year", -kMaxYear, kMaxYear},
                            {CalendarField::month, "month", 1, 12},
                            {CalendarField::day, "day", 1, 31},
                            {CalendarField::hour, "hour", 0, 23},
                            {CalendarField::minute, "minute", 0, 59},
                            {CalendarField::weekday, "weekday", 0, 6},
                            {CalendarField::dayofyear, "dayofyear", 1, 366},
                            {CalendarField::season, "season", 0, 3}};
constexpr std::string_view kSeasons[] = {"DJF", "MAM", "JJA", "SON"};

const Known& known(CalendarField field) { return kKnown[static_cast<std::size_t>(field)]; }

/// One value of a field as typed; nullopt for text that is never a value of the field.
std::optional<std::int64_t> field_value(CalendarField field, std::string_view text) {
  if (field == CalendarField::season) {
    const auto season = std::find(std::begin(kSeasons), std::end(kSeasons), text);
    if (season == std::end(kSeasons)) return std::nullopt;
    return season - std::begin(kSeasons);
  }
  std::int64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size() || value < known(field).low ||
      value > known(field).high)
    return std::nullopt;
  return value;
}

std::string wrong_value(CalendarField field, std::string_view text) {
  if (field == CalendarField::season)
    return fmt::format("'{}' is not a season; there are {}", text, fmt::join(kSeasons, ", "));
  if (field == CalendarField::year) return fmt::format("'{}' is not a year", text);
  return fmt::format("'{}' is not {} {}: it is a whole number from {} to {}{}", text,
                     field == CalendarField::hour ? "an" : "a", known(field).name, known(field).low,
                     known(field).high,
                     field == CalendarField::weekday ? ", Monday to Sunday" : "");
}

/// In 1970-01-01's place, as cftime counts them.
int first_weekday(Calendar calendar) {
  switch (calendar) {
    case Calendar::julian:
    case Calendar::days_360:
      return 2;
    case Calendar::all_leap:
      return 6;
    default:
      return 3;
  }
}

}  // namespace

std::optional<CalendarField> parse_calendar_field(std::string_view name) {
  for (const Known& one : kKnown)
    if (one.name == name) return one.field;
  return std::nullopt;
}

std::string_view calendar_field_name(CalendarField field) { return known(field).name; }

std::string calendar_field_names() {
  std::vector<std::string> names;
  for (const Known& one : kKnown) names.emplace_back(one.name);
  return join(names, ", ");
}

std::int64_t calendar_field(CalendarField field, Calendar calendar, const Moment& moment) {
  const std::int64_t seconds = moment.of_day / kNanosecondsPerSecond;
  switch (field) {
    case CalendarField::year:
      return date_from_days(calendar, moment.days).year;
    case CalendarField::month:
      return date_from_days(calendar, moment.days).month;
    case CalendarField::day:
      return date_from_days(calendar, moment.days).day;
    case CalendarField::hour:
      return seconds / 3600;
    case CalendarField::minute:
      return seconds / 60 % 60;
    case CalendarField::weekday:
      return ((moment.days % 7) + 7 + first_weekday(calendar)) % 7;
    case CalendarField::dayofyear:
      return day_of_year(calendar, moment.days);
    case CalendarField::season:
      return date_from_days(calendar, moment.days).month % 12 / 3;
  }
  return 0;
}

void CalendarTest::add(CalendarField field, const JsonRef& values) {
  Condition condition{field, {}, {}};
  const std::vector<JsonRef> all =
      values.is_array() ? values.elements() : std::vector<JsonRef>{values};
  if (all.empty()) throw values.error("the list is empty");
  for (const JsonRef& one : all) {
    std::optional<std::int64_t> value;
    std::string text;
    if (field == CalendarField::season) {
      text = one.string();
      value = field_value(field, text);
    } else if (one.is_number()) {
      value = one.integer();
      text = std::to_string(*value);
      value = field_value(field, text);
    } else {
      text = one.value().is_string()
                 ? one.string()
                 : one.value().dump(-1, ' ', false, Json::error_handler_t::replace);
    }
    if (!value) throw one.error(wrong_value(field, text));
    condition.ranges.emplace_back(*value, *value);
    condition.text += (condition.text.empty() ? "" : ", ") + text;
  }
  conditions_.push_back(std::move(condition));
}

void CalendarTest::add(CalendarField field, const std::string& values, const std::string& where) {
  Condition condition{field, {}, {}};
  for (const std::string& text : split(values, ',')) {
    const std::size_t colon = field == CalendarField::season ? std::string::npos : text.find(':');
    const auto value_of = [&](const std::string& typed) {
      const auto value = field_value(field, typed);
      if (!value)
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("{}: {}", where, wrong_value(field, typed)));
      return *value;
    };
    const std::int64_t first = value_of(text.substr(0, colon));
    const std::int64_t last = colon == std::string::npos ? first : value_of(text.substr(colon + 1));
    if (last < first)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: {} to {} is not a range; write {}:{},{}:{}", where, first, last,
                              first, known(field).high, known(field).low, last));
    condition.ranges.emplace_back(first, last);
    condition.text += (condition.text.empty() ? "" : ", ") + text;
  }
  conditions_.push_back(std::move(condition));
}

bool CalendarTest::passes(Calendar calendar, __int128 nanoseconds) const {
  const std::optional<Moment> moment = moment_of(nanoseconds);
  if (!moment) return false;
  return std::all_of(conditions_.begin(), conditions_.end(), [&](const Condition& condition) {
    const std::int64_t value = calendar_field(condition.field, calendar, *moment);
    return std::any_of(
        condition.ranges.begin(), condition.ranges.end(),
        [value](const auto& range) { return value >= range.first && value <= range.second; });
  });
}

std::string CalendarTest::text() const {
  std::vector<std::string> parts;
  for (const Condition& condition : conditions_)
    parts.push_back(fmt::format("{} {}", calendar_field_name(condition.field), condition.text));
  return join(parts, " and ");
}

std::vector<bool> passing_times(const Dataset& dataset, const std::string& dim,
                                const CalendarTest& test, const std::string& where) {
  const Dataset::Index& index = dataset.index(dim);
  const auto times = TimeAxis::of(index);
  if (!times)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{}: '{}' holds no times{}{}, so that it has no {}", where, dim,
                    index.cf.note.empty() ? "" : ": it holds ", index.cf.note, test.text()));
  std::vector<bool> passing(static_cast<std::size_t>(index.values.shape[0]));
  for (std::int64_t i = 0; i < index.values.shape[0]; ++i) {
    const std::optional<__int128> time = times->nanoseconds(i);
    passing[static_cast<std::size_t>(i)] = time && test.passes(times->calendar(), *time);
  }
  return passing;
}

}  // namespace batchfs
