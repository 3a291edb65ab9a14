#pragma once
// Coordinates that no array holds: they follow from the axes of an image's arrays in its metadata.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/dataset/dataset.h"

namespace batchfs {

/// The coordinates of the dimensions of `variables`, but for those of a name that `is_stored`. A
/// dimension whose name is another than the axis's has none. Throws invalid_argument where two
/// variables have different coordinates for one dimension.
std::vector<Variable> axis_coordinates(
    const std::vector<Variable>& variables,
    const std::function<bool(const std::string& name)>& is_stored);

/// The positions of a coordinate along space or time. Throws not_supported for more than 2^27.
NdArray axis_values(const Variable& coordinate);

/// Renames the dimensions of length 1 of variables from other groups, `others`, that have another
/// length elsewhere. A label image has them: its dimensions are those of the image, or 1.
void separate_single_dims(std::vector<Variable>& variables,
                          const std::map<std::string, std::string>& others);

}  // namespace batchfs
