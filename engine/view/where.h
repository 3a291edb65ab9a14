#pragma once
// "where" of a view's samples: the positions along a dimension whose labels are as it asks.

#include <vector>

#include "engine/dataset/dataset.h"
#include "engine/dataset/positions.h"
#include "engine/view/sample_spec.h"
#include "engine/view/time_axis.h"

namespace batchfs {

/// For each position of the selection, whether its label does not fulfil `where`. `times` are the
/// labels of the selection; null unless `where` has fields of the calendar. Throws as select().
std::vector<bool> rejected_positions(const SampleSpec::Where& where, const Dataset& dataset,
                                     const Positions& selected, const TimeAxis* times);

}  // namespace batchfs
