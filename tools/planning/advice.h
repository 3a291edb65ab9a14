#pragma once
// Advice that makes reading a view cheaper, or mixes its samples better.

#include <cstdint>
#include <string>
#include <vector>

#include "tools/planning/epoch_cost.h"
#include "tools/planning/node_cost.h"
#include "tools/planning/view_cost.h"

namespace batchfs {

/// Warns if a view needs more memory than the budget, with advice; nothing if it does not. Both in
/// bytes.
std::optional<std::string> memory_advice(double need, std::uint64_t budget);

/// Warns about lanes that the ranks do not divide; nothing if they do, or if there is one node.
std::optional<std::string> cluster_advice(const View& view, const Cluster& cluster);

/// Most important first; each a sentence or two. `memory`: the budget in bytes.
std::vector<std::string> advice(const View& view, const ViewCost& cost, const EpochCost& epoch,
                                std::uint64_t memory);

}  // namespace batchfs
