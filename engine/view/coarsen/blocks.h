#pragma once
// Blocks of an array that become one value each.

#include "engine/base/dims.h"
#include "engine/view/coarsen/coarsen_spec.h"

namespace batchfs {

/// Reduces a C-order array in place, to the C-order array of the shape that it returns. `factors`:
/// positions that become one, per dimension; they divide the shape.
///
/// NaN is skipped: a block of NaN alone has mean, min and max NaN and the sum
/// 0. The values of a block are added one after the other, in C order.
Dims reduce_blocks(double* values, const Dims& shape, const Dims& factors, CoarsenMethod how);

}  // namespace batchfs
