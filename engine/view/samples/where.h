#pragma once
// "where" of a view's samples: the positions of the selection that are as it asks.

#include <vector>

#include "engine/dataset/dataset.h"
#include "engine/dataset/positions.h"
#include "engine/view/samples/sample_spec.h"

namespace batchfs {

/// For each position of the selection, whether `where` does not select it. Throws as
/// select_within().
std::vector<bool> rejected_positions(const SampleSpec::Where& where, const Dataset& dataset,
                                     const Positions& selected);

}  // namespace batchfs
