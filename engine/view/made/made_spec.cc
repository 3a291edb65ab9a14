#include "engine/view/made/made_spec.h"

#include <cmath>
#include <set>

#include <fmt/format.h>

#include "engine/view/samples/duration.h"

namespace batchfs {

namespace {

constexpr std::int64_t kMaxMean = INT64_C(86'400'000'000'000);  // nanoseconds

const MadeKind& kind_of(const JsonRef& make) {
  const std::string name = make.string();
  const MadeKind* kind = find_made_kind(name);
  if (kind == nullptr)
    throw make.error(
        fmt::format("there is no channel '{}'{}", name, nearest_or_all(name, made_kind_names())));
  return *kind;
}

/// Throws where a key is of other channels.
void check_keys(const JsonRef& json, const MadeKind& kind) {
  const auto only_with = [&](const char* key, bool right, const char* which) {
    if (const auto found = json.find(key); found && !right)
      throw found->error(fmt::format("it goes with {}, not with '{}'", which, kind.name));
  };
  const bool of_place = kind.needs_latitude || kind.needs_longitude;
  only_with("of", kind.max_operands > 0, "channels of other variables, as wind_speed");
  only_with("value", kind.made == Made::constant, "\"make\": \"constant\"");
  only_with("mean", kind.made == Made::insolation || kind.made == Made::toa_radiation,
            "insolation and toa_radiation");
  only_with("time", kind.needs_time, "channels of time");
  only_with("lead", kind.needs_time, "channels of time");
  only_with("units", of_place, "channels of latitude and longitude");
}

TimeChoice parse_time_choice(const JsonRef& json) {
  TimeChoice choice{.time = "", .lead = std::nullopt, .path = json.path()};
  if (const auto time = json.find("time")) choice.time = time->string();
  if (const auto lead = json.find("lead")) {
    if (lead->value().is_boolean() && lead->boolean())
      throw lead->error("expected the name of a dimension, or false");
    choice.lead = lead->value().is_boolean() ? std::string() : lead->string();
  }
  return choice;
}

MadeSpec parse_made(const JsonRef& json) {
  MadeSpec spec;
  spec.kind = &kind_of(json.at("make"));
  json.allow_only({"make", "name", "of", "value", "mean", "time", "lead", "units"});
  check_keys(json, *spec.kind);
  spec.path = json.path();
  spec.name = spec.kind->name;
  if (const auto name = json.find("name")) {
    spec.name = name->string();
    if (spec.name.empty()) throw name->error("the name is empty");
  }
  if (spec.kind->max_operands > 0) {
    const JsonRef of = json.at("of");
    spec.of = of.strings();
    const std::size_t least = spec.kind->min_operands, most = spec.kind->max_operands;
    if (spec.of.size() < least || spec.of.size() > most)
      throw of.error(
          fmt::format("'{}' is of {} variables, not of {}", spec.kind->name,
                      least == most ? std::to_string(least) : fmt::format("{} to {}", least, most),
                      spec.of.size()));
  }
  if (spec.kind->made == Made::constant) {
    spec.value = json.at("value").number();
    if (!std::isfinite(spec.value)) throw json.at("value").error("it is not a finite number");
  }
  if (const auto mean = json.find("mean")) {
    const Duration duration = read_duration(*mean);
    if (duration.months != 0 || duration.nanoseconds <= 0 || duration.nanoseconds > kMaxMean)
      throw mean->error(fmt::format("'{}' is not more than 0 and at most 1d", mean->string()));
    spec.mean_nanoseconds = duration.nanoseconds;
  }
  spec.time_choice = parse_time_choice(json);
  if (const auto units = json.find("units")) {
    if (units->string() != "degrees")
      throw units->error(fmt::format("'{}' is not \"degrees\"", units->string()));
    spec.in_degrees = true;
  }
  return spec;
}

}  // namespace

bool MadeSpec::same_channel(const MadeSpec& other) const {
  return kind->made == other.kind->made && of == other.of && value == other.value &&
         mean_nanoseconds == other.mean_nanoseconds && times == other.times &&
         in_degrees == other.in_degrees;
}

TensorVariables parse_tensor_variables(const JsonRef& json) {
  if (json.is_string() || json.is_object())
    throw json.error(fmt::format("expected a list; write [{}]", json.value().dump()));
  TensorVariables result;
  std::set<std::string> seen;
  std::size_t place = 0;
  for (const JsonRef& entry : json.elements()) {
    if (entry.is_object()) {
      result.made.push_back(parse_made(entry));
      result.made.back().place = place;
    } else {
      result.stored.push_back(entry.string());
    }
    const std::string& name = entry.is_object() ? result.made.back().name : result.stored.back();
    if (!seen.insert(name).second)
      throw entry.is_object()
          ? entry.error(
                fmt::format("'{}' is given twice; call one of them otherwise: \"name\"", name))
          : json.error(fmt::format("'{}' is given twice", name));
    ++place;
  }
  if (place == 0) throw json.error("the list is empty");
  return result;
}

}  // namespace batchfs
