#pragma once
// Parts of "normalize": the rule, for callers that have no statistics yet, and the check of the
// numbers, for which the positions must be known that samples reach.

#include "engine/view/normalize.h"

namespace batchfs {

/// "normalize" without its statistics: a file that it names is not read.
NormalizeSpec parse_normalize_rule(const JsonRef& json);

/// Throws invalid_argument, naming the variable and what to do, where a number that a sample needs
/// cannot be used. `reached` returns the positions of each dimension of the variable that samples
/// reach; it is called where numbers of other positions may be at fault.
void check_normalization(const NormalizeSpec& spec, const Dataset& dataset,
                         const Variable& variable, const std::map<std::string, Positions>& selected,
                         const std::function<std::vector<Positions>()>& reached);

}  // namespace batchfs
