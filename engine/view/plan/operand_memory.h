#pragma once
// Memory for the operands of channels that are combined (AssembledChannel): a batch takes it beside
// its tensors until all of its chunks have arrived.

#include <cstdint>
#include <vector>

#include "engine/view/view.h"

namespace batchfs {

/// Bytes for a global batch, of each of TensorSet::combinations. UINT64_MAX where 64 bits do not hold
/// the number.
std::vector<std::uint64_t> operand_sizes(const View& view, std::int64_t global_batch);

/// The sum of operand_sizes().
std::uint64_t operand_memory(const View& view, std::int64_t global_batch);

}  // namespace batchfs
