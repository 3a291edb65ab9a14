#pragma once
// Labels on the wire: a view's coordinates, sent once, and the windows of each batch's samples.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/pipeline/memory_file.h"
#include "engine/view/view.h"

namespace batchfs::handoff {

/// The CoordinateRecords of a view and the values that they name.
std::vector<std::byte> coordinate_bytes(const View& view);

/// The last part of a Batch message.
struct SentWindows {
  std::vector<std::byte> bytes;            // the WindowsRecord; numbers and windows where few
  std::shared_ptr<const MemoryFile> file;  // holds them if there are many
};
/// Throws no_memory.
SentWindows windows_to_send(const View& view, std::int64_t epoch, std::int64_t batch);

}  // namespace batchfs::handoff
