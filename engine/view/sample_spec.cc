#include "engine/view/sample_spec.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/view/view_hints.h"

namespace batchfs {

namespace {

struct FieldRange {
  std::string_view name;
  CalendarField field;
  std::int64_t low, high;
};

constexpr FieldRange kFields[] = {{"year", CalendarField::year, -100'000, 100'000},
                                  {"month", CalendarField::month, 1, 12},
                                  {"day", CalendarField::day, 1, 31},
                                  {"hour", CalendarField::hour, 0, 23},
                                  {"minute", CalendarField::minute, 0, 59},
                                  {"dayofyear", CalendarField::dayofyear, 1, 366},
                                  {"weekday", CalendarField::weekday, 0, 6}};

struct Season {
  std::string_view name;
  std::int64_t months[3];
};

constexpr Season kSeasons[] = {
    {"DJF", {12, 1, 2}}, {"MAM", {3, 4, 5}}, {"JJA", {6, 7, 8}}, {"SON", {9, 10, 11}}};

std::vector<JsonRef> nonempty_list(const JsonRef& json) {
  if (!json.is_array())
    throw json.error(fmt::format("expected a list; write [{}]", json.value().dump()));
  std::vector<JsonRef> elements = json.elements();
  if (elements.empty()) throw json.error("the list is empty");
  return elements;
}

SampleSpec::Where::Field parse_field(const FieldRange& range, const JsonRef& json) {
  std::set<std::int64_t> values;
  for (const JsonRef& element : nonempty_list(json))
    values.insert(element.integer(range.low, range.high));
  return {range.field, {values.begin(), values.end()}};
}

SampleSpec::Where::Field parse_season(const JsonRef& json) {
  std::set<std::int64_t> months;
  for (const JsonRef& element : nonempty_list(json)) {
    const std::string name = element.string();
    const auto* season = std::find_if(std::begin(kSeasons), std::end(kSeasons),
                                      [&](const Season& each) { return each.name == name; });
    if (season == std::end(kSeasons))
      throw element.error(fmt::format("'{}' is none of DJF, MAM, JJA, SON", name));
    months.insert(std::begin(season->months), std::end(season->months));
  }
  return {CalendarField::month, {months.begin(), months.end()}};
}

bool parse_of(const JsonRef& json) {
  const std::string text = json.string();
  if (text != "start" && text != "footprint")
    throw json.error(fmt::format("'{}' is none of start, footprint{}", text,
                                 did_you_mean(text, {"start", "footprint"})));
  return text == "footprint";
}

/// The condition for one dimension: fields of the calendar, a selector, or both.
SampleSpec::Where parse_condition(const std::string& dim, const JsonRef& json, bool footprint) {
  SampleSpec::Where where;
  where.dim = dim;
  where.path = json.path();
  where.footprint = footprint;
  if (!json.is_object()) {
    where.selector = parse_selector(json);
    return where;
  }
  Json rest = Json::object();
  bool any = false;
  for (const auto& [key, value] : json.members()) {
    const auto* range = std::find_if(std::begin(kFields), std::end(kFields),
                                     [&name = key](const FieldRange& f) { return f.name == name; });
    if (key == "of") {
      where.footprint = parse_of(value);
      continue;
    }
    any = true;
    if (range != std::end(kFields)) {
      where.fields.push_back(parse_field(*range, value));
    } else if (key == "season") {
      where.fields.push_back(parse_season(value));
    } else if (key == "from" || key == "to" || key == "wrap") {
      rest[key] = value.value();
    } else {
      allow_only(json,
                 {"year", "month", "day", "hour", "minute", "dayofyear", "weekday", "season",
                  "from", "to", "wrap", "of"},
                 view_hints::kWhere);
    }
  }
  if (!any) throw json.error("name a field of the calendar, as {\"month\": [6, 7, 8]}, or a range");
  if (!rest.empty()) where.selector = parse_selector(JsonRef(rest, json.path()));
  return where;
}

std::vector<SampleSpec::Where> parse_where(const JsonRef& json) {
  std::vector<SampleSpec::Where> result;
  bool footprint = false;
  const auto members = json.members();
  for (const auto& [dim, value] : members)
    if (dim == "of") footprint = parse_of(value);
  for (const auto& [dim, value] : members)
    if (dim != "of") result.push_back(parse_condition(dim, value, footprint));
  if (result.empty()) throw json.error("name at least one dimension");
  return result;
}

}  // namespace

SampleSpec parse_samples(const JsonRef& json) {
  SampleSpec spec;
  allow_only(json, {"spacing", "where"}, view_hints::kSamples);
  if (const auto spacing = json.find("spacing")) {
    for (const auto& [dim, step] : spacing->members()) {
      spec.spacing.push_back({dim, read_duration(step), step.path()});
      if (spec.spacing.back().step.is_zero())
        throw step.error(fmt::format("'{}': labels cannot be 0 apart", step.string()));
    }
    if (spec.spacing.empty()) throw spacing->error("name at least one dimension");
  }
  if (const auto where = json.find("where")) spec.where = parse_where(*where);
  return spec;
}

OffsetList parse_offsets(const std::string& dim, const JsonRef& json) {
  constexpr std::int64_t kMaxStep = INT64_C(1) << 40;
  constexpr std::size_t kMaxDurations = 1024;
  OffsetList list{dim, {}, {}, json.path()};
  for (const JsonRef& element : json.elements()) {
    const bool is_duration = element.is_string();
    if (is_duration ? !list.steps.empty() : !list.durations.empty())
      throw element.error(fmt::format("{} is {}, and those before are {}; a list has one kind",
                                      element.value().dump(),
                                      is_duration ? "a length of time" : "a number",
                                      is_duration ? "numbers of positions" : "lengths of time"));
    if (is_duration)
      list.durations.push_back(read_duration(element));
    else
      list.steps.push_back(element.integer(-kMaxStep, kMaxStep));
  }
  if (list.steps.empty() && list.durations.empty()) throw json.error("the list is empty");
  if (list.durations.size() > kMaxDurations)
    throw json.error(
        fmt::format("{} lengths of time; the most is {}", list.durations.size(), kMaxDurations));
  return list;
}

}  // namespace batchfs
