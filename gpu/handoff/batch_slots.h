#pragma once
// The GPU stage's batches as the hand-off wants them.

#include <memory>

#include "engine/pipeline/engine.h"
#include "gpu/handoff/device_delivery.h"

namespace batchfs::handoff {

/// The batches from `first` on, on this device, in at most `memory` of it: with as many slots as
/// fit, five at most. Throws no_memory where two do not. `engine` outlives it.
std::unique_ptr<SlotStream> batch_slots(Engine& engine, int device, const BatchRequest& first,
                                        std::uint64_t memory);

}  // namespace batchfs::handoff
