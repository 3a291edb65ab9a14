#pragma once
// Mode client: batches in slots of the reader's own device memory. The programs that make them are
// made here, from chunks that are read into memory which both processes have, and run there: see
// protocol.h. Needs no GPU.

#include <cstdint>
#include <memory>

#include "engine/pipeline/engine.h"
#include "gpu/handoff/device_delivery.h"
#include "gpu/handoff/socket_watcher.h"

namespace batchfs::handoff {

/// The stream that begins with this batch, for a decoder that may take `memory` bytes. `channel` is
/// the server's end of the socket for Setups; `id` that of the stream's memory. The stream has no
/// thread: the engine's workers plan and send programs, and `watcher`, which outlives it, receives
/// the reader's reports. try_next() throws not_supported for a batch that programs cannot make. Throws not_supported for a view that they
/// cannot, no_memory when there is too little.
std::unique_ptr<SlotStream> reader_slots(Engine& engine, SocketWatcher& watcher, int channel,
                                         std::uint64_t id, const BatchRequest& first,
                                         std::uint64_t memory);

}  // namespace batchfs::handoff
