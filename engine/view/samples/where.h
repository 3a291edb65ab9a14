#pragma once
// "where" of a view's samples: the positions along a dimension whose labels are as it asks.

#include <vector>

#include "engine/dataset/dataset.h"
#include "engine/dataset/positions.h"
#include "engine/view/samples/sample_spec.h"

namespace batchfs {

/// For each position of the selection, whether `where` does not select its label. Throws as
/// select().
std::vector<bool> rejected_positions(const SampleSpec::Where& where, const Dataset& dataset,
                                     const Positions& selected);

}  // namespace batchfs
