#pragma once
// The message that hands one batch over.

#include <cstdint>
#include <map>

#include "gpu/handoff/delivery.h"
#include "gpu/handoff/outbox.h"
#include "gpu/handoff/protocol.h"
#include "gpu/handoff/shared_view.h"

namespace batchfs::handoff {

/// For each kind of memory, the id of the piece that the reader mapped last and keeps.
using AttachedMemory = std::map<MemoryKind, std::uint64_t>;

/// `batch`: the caller sets lease, stream, request, epoch and number; the other fields, and the
/// records after it, are filled in. `version`: the protocol version that the reader speaks. Sends a
/// descriptor only if `attached`, which is updated, lacks the memory.
/// `reserve` as in windows_to_send(). Throws not_supported if the message would be too long, no_memory.
Outgoing batch_message(const SharedView& view, const DeliveredBatch& delivered, BatchMessage batch,
                       std::uint16_t version, AttachedMemory& attached, const Reserve& reserve);

}  // namespace batchfs::handoff
