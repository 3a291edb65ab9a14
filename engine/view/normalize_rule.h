#pragma once
// Which variables "normalize" of a view applies to, and how, for callers that have no statistics
// yet.

#include "engine/view/normalize.h"

namespace batchfs {

/// "normalize" without its statistics: a file that it names is not read.
NormalizeSpec parse_normalize_rule(const JsonRef& json);

}  // namespace batchfs
