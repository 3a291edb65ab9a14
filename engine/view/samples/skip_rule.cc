#include "engine/view/samples/skip_rule.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/counted.h"

namespace batchfs {

SkipRule parse_skip_rule(const JsonRef& missing, bool skips) {
  SkipRule rule;
  for (const char* key : {"at_most", "variables"})
    if (const auto given = missing.find(key); given && !skips)
      throw given->error("it goes with \"nan\": \"skip\"");
  if (const auto at_most = missing.find("at_most")) {
    rule.at_most = at_most->number();
    if (!(rule.at_most >= 0 && rule.at_most <= 1))
      throw at_most->error(fmt::format("{} is not a share of missing values: it is between 0 and 1",
                                       at_most->value().dump()));
  }
  if (const auto names = missing.find("variables")) {
    if (names->is_string())
      throw names->error(fmt::format("expected a list; write [{}]", names->value().dump()));
    rule.names = names->strings();
    if (rule.names.empty()) throw names->error("the list is empty");
    for (std::size_t i = 0; i < rule.names.size(); ++i)
      if (std::find(rule.names.begin(), rule.names.begin() + static_cast<std::ptrdiff_t>(i),
                    rule.names[i]) != rule.names.begin() + static_cast<std::ptrdiff_t>(i))
        throw names->error(fmt::format("'{}' is given twice", rule.names[i]));
  }
  return rule;
}

void add_to_json(const SkipRule& rule, Json& missing) {
  missing["at_most"] = rule.at_most;
  if (!rule.names.empty()) missing["variables"] = rule.names;
}

std::vector<VariablePlacement> checked_placements(
    const SkipRule& rule, const std::vector<TensorSpec>& tensors,
    const std::vector<const Variable*>& variables,
    const std::vector<VariablePlacement>& placements) {
  std::vector<bool> counts(placements.size());
  for (std::size_t i = 0; i < rule.names.size(); ++i) {
    const std::string& name = rule.names[i];
    bool known = false, has_floats = false;
    for (std::size_t p = 0; p < placements.size(); ++p) {
      const Variable& variable = *variables[placements[p].variable];
      if (tensors[placements[p].tensor].name != name && variable.name != name) continue;
      known = true;
      if (!variable.cf.decoded.is_float()) continue;
      has_floats = true;
      counts[p] = true;
    }
    if (!known) {
      std::vector<std::string> names;
      for (const TensorSpec& tensor : tensors) names.push_back(tensor.name);
      for (const Variable* variable : variables)
        if (std::find(names.begin(), names.end(), variable->name) == names.end())
          names.push_back(variable->name);
      throw Error(ErrorCode::not_found,
                  fmt::format("missing.variables[{}]: the view has no tensor or variable '{}'{}", i,
                              name, nearest_or_all(name, names)));
    }
    if (!has_floats)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("missing.variables[{}]: values of '{}' cannot be NaN", i, name));
  }
  std::vector<VariablePlacement> result;
  for (std::size_t p = 0; p < placements.size(); ++p)
    if (counts[p]) result.push_back(placements[p]);
  return result;
}

Error nothing_left(const SkipRule& rule, std::int64_t windows) {
  return Error(
      ErrorCode::invalid_argument,
      rule.at_most > 0
          ? fmt::format("missing.at_most: no sample is left: in each of {} a share of more than {} "
                        "is NaN",
                        counted(windows, "window"), rule.at_most)
          : fmt::format("missing: \"skip\" leaves no sample: each of the {} windows holds a NaN",
                        windows));
}

}  // namespace batchfs
