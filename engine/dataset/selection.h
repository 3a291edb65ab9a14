#pragma once
// Selecting along a dimension by label or by position, as xarray's sel and isel.

#include <string>

#include "engine/dataset/dataset.h"
#include "engine/dataset/positions.h"
#include "engine/dataset/selector.h"

namespace batchfs {

/// Looks a selector up. Labels are inclusive at both ends, partial dates are ranges, positions are
/// half open. A range that goes over the end of a cyclic coordinate (engine/dataset/circle.h) needs
/// `wrap`; other ranges are cut to the coordinate. Throws not_found for an absent label or position
/// (naming the range of the coordinate), invalid_argument for a malformed one or an empty result.
Positions select(const Dataset& dataset, const std::string& dim, const Selector& selector);

/// A selection from `selected`, as positions in `selected`: those of the selector and its steps
/// count there. Labels are looked up as above, among all of the dimension; those that `selected`
/// lacks are left out, and the result may be empty.
Positions select_within(const Dataset& dataset, const std::string& dim, const Selector& selector,
                        const Positions& selected);

}  // namespace batchfs
