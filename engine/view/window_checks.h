#pragma once
// Checks of a view's windows and of the names of its tensors.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/dataset/dataset.h"
#include "engine/dataset/positions.h"
#include "engine/view/batch_plan.h"
#include "engine/view/geometry.h"
#include "engine/view/spec.h"

namespace batchfs {

/// Throws where windows that wrap would join the two edges of a region.
void check_circle(const Dataset& dataset, const std::string& dim, const Positions& positions);

/// The numbers of the first and the last window along a dimension of `length` positions, where
/// offsets add `least` (0 or less) to `most` (0 or more) positions. Start number n lies at n times
/// the stride. Throws invalid_argument where no window fits.
std::pair<std::int64_t, std::int64_t> start_numbers(const WindowSpec& window, std::int64_t length,
                                                    std::int64_t least, std::int64_t most);

/// Throws where a split would not see the values at offsets that another source looks up among its
/// own labels: they are not in the footprints that it keeps apart. A gap along the dimension may
/// cover them.
void check_footprints(const OffsetList& offsets, const std::optional<SplitSpec>& split);

/// Can elements of a tensor lie outside of the selection, or where another source has nothing?
bool may_pad(const std::vector<WindowDim>& windows,
             const std::vector<VariablePlacement>& placements);

/// Throws for a tensor with a name that an array of a Zarr batch cannot have: that of a dimension
/// is the dimension's coordinate.
void check_zarr_names(const std::vector<std::string>& formats,
                      const std::vector<TensorSpec>& tensors);

}  // namespace batchfs
