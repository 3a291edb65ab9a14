#include "engine/view/samples/sample_spec.h"

#include <fmt/format.h>

#include "engine/base/json_text.h"
#include "engine/base/strings.h"
#include "engine/view/view_hints.h"

namespace batchfs {

namespace {

bool parse_of(const JsonRef& json) {
  const std::string text = json.string();
  if (text != "start" && text != "footprint")
    throw json.error(fmt::format("'{}' is none of start, footprint{}", text,
                                 did_you_mean(text, {"start", "footprint"})));
  return text == "footprint";
}

/// The condition for one dimension: a selector, in which an object may hold "of".
SampleSpec::Where parse_condition(const std::string& dim, const JsonRef& json, bool footprint) {
  if (!json.is_object()) return {dim, parse_selector(json), footprint, json.path()};
  Json selector = json.value();
  if (const auto of = json.find("of")) {
    footprint = parse_of(*of);
    selector.erase("of");
  }
  if (selector.empty())
    throw json.error("name a field of the calendar, as {\"month\": [6, 7, 8]}, or a range");
  return {dim, parse_selector(JsonRef(selector, json.path())), footprint, json.path()};
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
  allow_only(
      json,
      {"spacing", "where", "mask", "list", "labels", "anchor", "snap", "tolerance", "weights"},
      view_hints::kSamples);
  if (const auto spacing = json.find("spacing")) {
    for (const auto& [dim, step] : spacing->members()) {
      spec.spacing.push_back({dim, read_duration(step), step.path()});
      if (spec.spacing.back().step.is_zero())
        throw step.error(fmt::format("'{}': labels cannot be 0 apart", step.string()));
    }
    if (spec.spacing.empty()) throw spacing->error("name at least one dimension");
  }
  if (const auto where = json.find("where")) spec.where = parse_where(*where);
  if (const auto mask = json.find("mask")) spec.mask = parse_mask(*mask);
  return spec;
}

OffsetList parse_offsets(const std::string& dim, const JsonRef& json) {
  constexpr std::int64_t kMaxStep = INT64_C(1) << 40;
  constexpr std::size_t kMaxDurations = 1024;
  OffsetList list{dim, {}, {}, json.path()};
  if (json.value().is_number() || json.value().is_string())
    throw json.error(fmt::format("expected a list; write [{}]", json_text(json.value(), -1)));
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
