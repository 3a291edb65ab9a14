#pragma once
// Sizes, strides and offsets of windows that a view states as durations.

#include <memory>
#include <vector>

#include "engine/view/geometry.h"
#include "engine/view/samples/joined_axes.h"
#include "engine/view/samples/reach.h"
#include "engine/view/samples/time_steps.h"
#include "engine/view/spec.h"

namespace batchfs {

/// Replaces the durations of a window by positions. A duration needs a step: that of "spacing",
/// else that of the dimension's coordinate if it is regular. Throws invalid_argument, naming the
/// label after which it is not, and for a duration that is not a multiple of the step.
void resolve_durations(WindowSpec& window, const SampleSpec& samples, TimeStepsByDim& times);

/// Offsets that are durations, to be looked up. Throws invalid_argument, naming the label, where a
/// coordinate is not in order or holds one twice, and for a dimension with "wrap".
std::shared_ptr<const LabelOffsets> resolve_offsets(const OffsetList& offsets,
                                                    const std::vector<WindowDim>& windows,
                                                    TimeStepsByDim& times);

/// The reach of the samples along each window dimension. Throws invalid_argument for a "reserve"
/// along another dimension, and as resolve_offsets().
std::vector<Reach> resolve_reaches(const std::vector<TensorDefinition>& tensors,
                                   const std::vector<OffsetList>& reserve,
                                   const std::vector<WindowDim>& windows, const Dataset& dataset,
                                   TimeStepsByDim& times, JoinedAxes& joined);

}  // namespace batchfs
