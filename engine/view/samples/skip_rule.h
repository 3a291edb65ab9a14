#pragma once
// When a window with missing values is not a sample: "missing" of a view with "nan": "skip".

#include <string>
#include <vector>

#include "engine/base/json.h"
#include "engine/view/batch_plan.h"
#include "engine/view/geometry.h"

namespace batchfs {

struct SkipRule {
  double at_most = 0;              // the share of missing values that a sample may have
  std::vector<std::string> names;  // tensors or variables whose values count; none: all
};

/// Reads "at_most" and "variables" of `missing`. Throws invalid_argument with the JSON path, also
/// where they are present and `skips` is false.
SkipRule parse_skip_rule(const JsonRef& missing, bool skips);

/// Adds the rule to a view's resolved "missing".
void add_to_json(const SkipRule& rule, Json& missing);

/// The placements whose values count. Throws not_found for a name that is neither a tensor nor a
/// variable of the view, invalid_argument for one whose values cannot be missing.
std::vector<VariablePlacement> checked_placements(const SkipRule& rule,
                                                  const std::vector<TensorSpec>& tensors,
                                                  const std::vector<const Variable*>& variables,
                                                  const std::vector<VariablePlacement>& placements);

/// The error of a view that has no sample left of `windows` windows.
Error nothing_left(const SkipRule& rule, std::int64_t windows);

}  // namespace batchfs
