#include "engine/view/made/value_times.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/dataset/labels.h"
#include "engine/dataset/units.h"

namespace batchfs {

namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string standard_name(const Variable& variable) {
  const auto it = variable.attributes.find("standard_name");
  return it != variable.attributes.end() && it->is_string() ? it->get<std::string>()
                                                            : std::string();
}

/// Times, or numbers that stand for times of a calendar that datetime64 has not.
bool holds_times(const Variable& variable) {
  return variable.is_readable() &&
         (variable.cf.time == CfDecoding::Time::datetime ||
          variable.cf.decoded.kind == Kind::datetime || variable.cf.counts_from.has_value());
}

bool has_times_along(const Dataset& dataset, const std::string& dim) {
  const Variable* index = dataset.index_of(dim);
  return index != nullptr && holds_times(*index);
}

/// By its type, its standard name, or the names that forecasts have it under.
bool is_lead(const Dataset& dataset, const std::string& dim) {
  static const std::vector<std::string> kNames = {
      "step",          "steps",           "lead",          "leads",        "lead_time",
      "leadtime",      "lead_times",      "lead_hour",     "lead_hours",   "prediction_timedelta",
      "forecast_step", "forecast_period", "forecast_hour", "forecast_lead"};
  const Variable* index = dataset.index_of(dim);
  if (index != nullptr &&
      (index->cf.decoded.kind == Kind::timedelta || standard_name(*index) == "forecast_period"))
    return true;
  return !has_times_along(dataset, dim) && contains(kNames, to_lower(dim));
}

/// The coordinate of the times at which values hold, along these dimensions; nullptr: none.
const Variable* valid_times(const Dataset& dataset, const std::string& start,
                            const std::string& lead) {
  const Variable* found = nullptr;
  for (const Variable& variable : dataset.variables()) {
    const bool fits =
        holds_times(variable) && contains(variable.dims, lead) &&
        std::all_of(variable.dims.begin(), variable.dims.end(),
                    [&](const std::string& dim) { return dim == start || dim == lead; });
    if (!fits) continue;
    if (variable.name == "valid_time") return &variable;
    if (standard_name(variable) == "time") found = &variable;
  }
  return found;
}

class Search {
 public:
  Search(const Dataset& dataset, const TimeChoice& choice, const std::vector<std::string>& windows,
         const std::vector<const Variable*>& stored)
      : dataset_(dataset), choice_(choice), windows_(windows), stored_(stored) {}

  ValueTimes run() const {
    if (const Variable* named = named_variable()) return of_variable(*named);
    std::string start = start_dim();
    if (start.empty()) {
      const Variable* only = only_valid_times();
      if (only == nullptr)
        throw fail(
            "no dimension has a coordinate of times (datetime64): it needs units as \"hours since "
            "1970-01-01\"");
      return of_variable(*only);
    }
    const std::string lead = lead_dim(start);
    if (lead.empty()) return {{std::move(start)}, ""};
    if (lead_unit(dataset_, lead)) return {{std::move(start), lead}, ""};
    if (const Variable* valid = valid_times(dataset_, start, lead)) return of_variable(*valid);
    throw no_lengths(start, lead);
  }

 private:
  Error fail(const std::string& why) const {
    return Error(ErrorCode::invalid_argument, fmt::format("{}: {}", choice_.path, why));
  }

  Error no_lengths(const std::string& start, const std::string& lead) const {
    const Variable* index = dataset_.index_of(lead);
    const std::string units = index != nullptr ? units_of(*index) : "";
    return fail(fmt::format(
        "the times are those of '{}' plus the lead times of '{}', which {}: it needs units as "
        "\"hours\", or the store a coordinate valid_time along both; \"lead\": false takes '{}' "
        "alone",
        start, lead,
        index == nullptr ? std::string("has no coordinate")
                         : fmt::format("are {} {}, not lengths of time", index->cf.decoded.name(),
                                       units.empty() ? std::string("without units")
                                                     : fmt::format("in '{}'", units)),
        start));
  }

  ValueTimes of_variable(const Variable& variable) const { return {variable.dims, variable.name}; }

  /// The variable that "time" names, where that is not a dimension.
  const Variable* named_variable() const {
    if (choice_.time.empty() || has_dim(choice_.time)) return nullptr;
    const Variable* variable = dataset_.find(choice_.time);
    if (variable == nullptr || variable->dims.empty() || variable->dims.size() > 2) return nullptr;
    if (!holds_times(*variable))
      throw fail(
          fmt::format("time: '{}' is {}, not times", variable->name, variable->cf.decoded.name()));
    return variable;
  }

  bool has_dim(const std::string& name) const {
    return std::any_of(dataset_.dims().begin(), dataset_.dims().end(),
                       [&](const auto& dim) { return dim.first == name; });
  }

  std::string start_dim() const {
    if (!choice_.time.empty()) {
      try {
        dataset_.dim_size(choice_.time);
      } catch (const Error& error) {
        throw Error(error.code(), fmt::format("{}.time: {}", choice_.path, error.why()));
      }
      return choice_.time;
    }
    std::vector<std::string> found;
    for (const std::string& dim : windows_)
      if (has_times_along(dataset_, dim)) found.push_back(dim);
    if (found.empty())
      for (const auto& [dim, size] : dataset_.dims())
        if (dataset_.original_dim(dim) == dim && has_times_along(dataset_, dim))
          found.push_back(dim);
    if (found.size() > 1)
      throw fail(
          fmt::format("there are several dimensions of times: {}; name one: \"time\": \"{}\"",
                      join(found, ", "), found.front()));
    return found.empty() ? std::string() : found.front();
  }

  /// valid_time of a single forecast, whose start is not a dimension.
  const Variable* only_valid_times() const {
    const Variable* found = dataset_.find("valid_time");
    return found != nullptr && holds_times(*found) && found->dims.size() == 1 ? found : nullptr;
  }

  bool any_stored_has(const std::string& dim) const {
    return std::any_of(stored_.begin(), stored_.end(),
                       [&](const Variable* variable) { return contains(variable->dims, dim); });
  }

  /// Empty: the time of a value is that of its start.
  std::string lead_dim(const std::string& start) const {
    if (choice_.lead) {
      if (choice_.lead->empty()) return "";
      if (!has_dim(*choice_.lead) || *choice_.lead == start)
        throw fail(fmt::format("lead: '{}' is not a dimension of lead times", *choice_.lead));
      return *choice_.lead;
    }
    if (start == "valid_time") return "";
    std::vector<std::string> found;
    for (const auto& [dim, size] : dataset_.dims())
      if (dim != start && is_lead(dataset_, dim) && (any_stored_has(dim) || !any_stored_has(start)))
        found.push_back(dim);
    if (found.size() > 1)
      throw fail(
          fmt::format("there are several dimensions of lead times: {}; name one: \"lead\": \"{}\"",
                      join(found, ", "), found.front()));
    return found.empty() ? std::string() : found.front();
  }

  const Dataset& dataset_;
  const TimeChoice& choice_;
  const std::vector<std::string>& windows_;
  const std::vector<const Variable*>& stored_;
};

}  // namespace

ValueTimes value_times(const Dataset& dataset, const TimeChoice& choice,
                       const std::vector<std::string>& windows,
                       const std::vector<const Variable*>& stored) {
  return Search(dataset, choice, windows, stored).run();
}

std::optional<std::int64_t> lead_unit(const Dataset& dataset, const std::string& dim) {
  const Variable* index = dataset.index_of(dim);
  if (index == nullptr || !index->is_readable()) return std::nullopt;
  const DataType& type = index->cf.decoded;
  if (type.kind == Kind::timedelta) return unit_nanoseconds(type);
  return type.is_integer() || type.is_float() ? time_unit_nanoseconds(units_of(*index))
                                              : std::nullopt;
}

}  // namespace batchfs
