#pragma once
// Lanes: successive parts of an epoch that batches come from in turn. A rank that reads every W-th
// batch then reads W-th of the lanes from end to end, and two ranks share only the chunks at the
// ends of their lanes.

#include <cstdint>

namespace batchfs {

/// Position i of an epoch of `samples` with lanes, as a position of its order without lanes.
/// Batches that are left over when the lanes are equally long, and the samples of no whole batch,
/// stay in their places.
std::int64_t position_without_lanes(std::int64_t i, std::int64_t samples, std::int64_t batch_size,
                                    std::int64_t lanes);

}  // namespace batchfs
