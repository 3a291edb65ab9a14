#pragma once
// The last check before a plan becomes writes to memory: a mistake in a plan, whatever a store or a
// view contains, must be an error of its batch and never a write outside of its tensors, or a
// tensor that is partly not written.

#include <optional>

#include "engine/base/error.h"
#include "engine/view/batch_plan.h"

namespace batchfs {

class View;

/// Throws internal unless every box of the plan lies inside its chunk and its tensor, and the
/// number of elements planned for each tensor is its size. Takes some nanoseconds a part.
void check_plan(const View& view, const BatchPlan& plan);

/// Returns the error that check_plan() throws; nullopt: none.
std::optional<Error> find_mistake(const View& view, const BatchPlan& plan);

}  // namespace batchfs
