#pragma once
// The positions of a variable that the samples of a view hold: what a scan reads, and what costs
// are estimated from.

#include <cstdint>
#include <vector>

#include "engine/dataset/positions.h"
#include "engine/view/samples/missing.h"

namespace batchfs {

/// Per dimension of the array, a subset of `selected`: less than that where restrictions leave out
/// starts.
std::vector<Positions> reached_positions(const ViewScan& scan, std::uint32_t variable);

}  // namespace batchfs
