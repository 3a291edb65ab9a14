#pragma once
// Parts of "normalize": the rule, for callers that have no statistics yet, and the check of the
// numbers, for which the positions must be known that samples reach.

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/view/normalize.h"
#include "engine/view/rows/reached_elements.h"

namespace batchfs {

/// "normalize" without its statistics: a file that it names is not read.
NormalizeSpec parse_normalize_rule(const JsonRef& json);

using FindReached = std::function<Reached(const std::vector<std::size_t>& dims)>;

/// Throws invalid_argument, naming the variable and what to do, where a number that a sample needs
/// cannot be used. `reached` returns what samples reach of the variable, whose elements it
/// distinguishes along these of its dimensions; it is called where other numbers may be at fault.
void check_normalization(const NormalizeSpec& spec, const Dataset& dataset,
                         const Variable& variable, const std::map<std::string, Positions>& selected,
                         const FindReached& reached);

}  // namespace batchfs
