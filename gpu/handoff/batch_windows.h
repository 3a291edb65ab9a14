#pragma once
// Labels on the wire: a view's coordinates, sent once, and the windows of each batch's samples: in
// the message, or in a memory file where they are many.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/view/view.h"
#include "gpu/handoff/delivery.h"
#include "gpu/handoff/shared_view.h"

namespace batchfs::handoff {

/// Bytes of the CoordinateRecords of a view and the values that they name.
std::uint64_t coordinates_size(const View& view);
/// Writes them to zeros, aligned to 8.
void write_coordinates(const View& view, std::byte* out);

/// Bytes of the memory file with the numbers and windows of a batch's samples; 0 where they go with
/// the message.
std::uint64_t windows_file_size(const View& view, std::int64_t batch);
/// Writes that file.
void write_windows(const View& view, std::int64_t epoch, std::int64_t batch, std::byte* out);

/// The last part of a Batch message.
struct SentWindows {
  std::vector<std::byte> bytes;            // the WindowsRecord; numbers and windows where few
  std::shared_ptr<const MemoryFile> file;  // holds them if there are many
};
/// Makes the file where the batch comes without it; an empty `reserve` reserves nothing. Throws
/// no_memory.
SentWindows windows_to_send(const View& view, std::int64_t epoch, std::int64_t batch,
                            const DeliveredBatch& delivered, const Reserve& reserve);

}  // namespace batchfs::handoff
