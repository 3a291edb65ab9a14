#pragma once
// "every" of a window dimension: windows start at the labels that lie a multiple of a length of
// time after an origin, wherever these labels are stored.

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "engine/dataset/dataset.h"
#include "engine/view/samples/time_steps.h"
#include "engine/view/spec.h"

namespace batchfs {

/// The starts along a dimension whose window.every is set, ascending: positions of the selection.
/// `range`: the steps that offsets go before (0 or less) and after (0 or more) the window. Throws
/// invalid_argument where the coordinate holds no times, the origin is not one of its dates, and
/// where no window begins at such a label.
std::shared_ptr<const std::vector<std::int64_t>> starts_every(
    const WindowSpec& window, const Dataset& dataset, const TimeSteps& times,
    std::pair<std::int64_t, std::int64_t> range);

}  // namespace batchfs
