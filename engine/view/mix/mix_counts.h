#pragma once
// The schedule of a mixture: from its file to the quotas of its blocks.

#include <cstdint>
#include <vector>

#include "engine/view/mix/mix_schedule.h"
#include "engine/view/mix/mix_spec.h"

namespace batchfs {

/// `samples`: of an epoch of each component by itself. A position of the result is a sample, or
/// with Mixing::batch a batch. Throws invalid_argument with the JSON path where a component has too
/// small a share for a quota of its own.
MixSchedule schedule_of(const MixSpec& spec, const std::vector<std::int64_t>& samples);

}  // namespace batchfs
