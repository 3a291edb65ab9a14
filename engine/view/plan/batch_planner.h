#pragma once
// The plans of a view's batches: their samples, and the boxes that they read from the store.

#include <cstdint>
#include <vector>

#include "engine/view/batch_plan.h"
#include "engine/view/geometry.h"
#include "engine/view/plan/chunk_walk.h"
#include "engine/view/view.h"

namespace batchfs {

/// The plan of these samples of a view of windows alone, in these rows of a batch, each sample in
/// one; without shapes. Throws no_memory for a plan that takes more than the limit.
BatchPlan plan_samples(const View& view, const std::vector<std::int64_t>& samples,
                       const std::vector<std::int64_t>& places, PlanLimit limit);

/// The chunks that a batch needs, one walk after the other in the order of its plan. They refer to
/// the view.
std::vector<ChunkWalk> chunk_walks(const View& view, std::int64_t epoch, std::int64_t batch);

}  // namespace batchfs
