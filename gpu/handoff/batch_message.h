#pragma once
// The message that hands one batch over.

#include <cstdint>
#include <map>

#include "gpu/handoff/delivery.h"
#include "gpu/handoff/outbox.h"
#include "gpu/handoff/protocol.h"
#include "gpu/handoff/shared_view.h"

namespace batchfs::handoff {

/// Of each kind of memory, the piece that the reader has mapped last and keeps.
using AttachedMemory = std::map<MemoryKind, std::uint64_t>;

/// `batch`: lease, stream, request, epoch and number are set; all else, and the records behind it,
/// are filled in. `version`: of the protocol, as the reader speaks it. A descriptor passes only
/// where `attached`, which is kept up to date, lacks the memory.
/// Throws not_supported where the message would be too long, no_memory.
Outgoing batch_message(const SharedView& view, const DeliveredBatch& delivered, BatchMessage batch,
                       std::uint16_t version, AttachedMemory& attached);

}  // namespace batchfs::handoff
