#pragma once
// The plan of a mixture's batch, put together from those of its components.

#include <cstdint>

#include "engine/view/batch_plan.h"

namespace batchfs {

/// The numbers of a component's first parts among those of the mixture.
struct FirstParts {
  std::int64_t sample = 0;
  std::uint32_t variable = 0, made = 0, combination = 0;
};

/// Appends `own`, the plan of a component's samples, to the mixture's, which has so many tensors;
/// not `samples` and `shapes`. In a plan, operands of combinations follow the tensors.
void append_plan(BatchPlan&& own, const FirstParts& first, std::uint32_t tensors, BatchPlan& plan);

}  // namespace batchfs
