#pragma once
// Finds the samples of a view that skips missing values.

#include <functional>

#include "engine/pipeline/engine.h"
#include "engine/view/samples/sample_index.h"

namespace batchfs {

/// The cost of scan_samples().
struct ScanCost {
  std::int64_t chunks = 0;
  double decoded_bytes = 0;
};
ScanCost scan_cost(const View& view);

/// Reads every selected value of the view's variables once and finds the windows without NaN, or
/// with at most the share of them that the view allows. `view` must have "missing": "skip". Blocks;
/// not for workers of the engine. Throws what reading throws, and no_memory where the bits or
/// counts of all windows do not fit into the engine's budget.
SampleIndex scan_samples(
    Engine& engine, const View& view,
    const std::function<void(std::int64_t done, std::int64_t all)>& progress = {});

}  // namespace batchfs
