#pragma once
// The chunks of a batch without its plan, which lists every part of them.

#include <cstdint>
#include <functional>

#include "engine/view/view.h"

namespace batchfs {

using UseChunk = std::function<void(std::uint32_t variable, std::int64_t chunk)>;

/// Calls `use` for each chunk that a batch needs, once, in the order of its plan. Returns how many
/// boxes of chunks its rows take.
std::int64_t for_each_chunk(const View& view, std::int64_t epoch, std::int64_t batch,
                            const UseChunk& use);

}  // namespace batchfs
