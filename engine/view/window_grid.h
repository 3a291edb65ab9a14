#pragma once
// Where the windows of a view begin along each of its dimensions, before restrictions.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/dataset/dataset.h"
#include "engine/dataset/positions.h"
#include "engine/view/geometry.h"
#include "engine/view/samples/time_steps.h"
#include "engine/view/spec.h"

namespace batchfs {

/// `ranges`: along each window dimension the steps that offsets go before (0 or less) and after (0
/// or more) the window. Throws invalid_argument where no window fits, not_supported for more than
/// 2^60 windows.
WindowGrid window_grid(const std::vector<WindowSpec>& windows,
                       const std::vector<std::pair<std::int64_t, std::int64_t>>& ranges,
                       const Dataset& dataset, const std::map<std::string, Positions>& selected,
                       TimeStepsByDim& times);

}  // namespace batchfs
