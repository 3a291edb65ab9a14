#pragma once
// Blocks of an array that become one value each.

#include <vector>

#include "engine/base/dims.h"
#include "engine/view/coarsen/coarsen_spec.h"

namespace batchfs {

/// Per dimension: is each position padding? An empty list: none is.
using PaddedPositions = std::vector<std::vector<bool>>;

/// Reduces a C-order array in place, to the C-order array of the shape that it returns. `factors`:
/// positions that become one, per dimension; they divide the shape. `padded` becomes that of the
/// result, where a block is padding if all of its positions are.
///
/// NaN is skipped, and padding is NaN: a block of NaN alone has mean, min and max NaN and the sum 0,
/// but a block of padding has the sum NaN, so that a next reduction skips it. The values of a block
/// are added one after the other, in C order.
Dims reduce_blocks(double* values, const Dims& shape, const Dims& factors, CoarsenMethod how,
                   PaddedPositions& padded);

}  // namespace batchfs
