#include "gpu/handoff/batch_windows.h"

#include <cstring>

#include "gpu/handoff/message_bytes.h"
#include "gpu/handoff/protocol.h"

namespace batchfs::handoff {

namespace {

/// A message with more of them would fill the socket's buffer by itself.
constexpr std::size_t kMaxInline = 32 << 10;
/// Limit for the coordinates of one view: they stay in memory while it is served, beyond --memory.
constexpr std::uint64_t kMaxSent = 32 << 20;
static_assert(kMaxSent <= kMaxCoordinates);

}  // namespace

std::vector<std::byte> coordinate_bytes(const View& view) {
  const std::vector<View::Coordinate>& coordinates = view.coordinates();
  std::vector<std::byte> bytes(coordinates.size() * sizeof(CoordinateRecord));
  for (std::size_t c = 0; c < coordinates.size(); ++c) {
    const auto& values = coordinates[c].values->data;
    CoordinateRecord record{(bytes.size() + 7) / 8 * 8, values.size()};
    if (record.offset + record.bytes > kMaxSent) record.bytes = 0;
    bytes.resize(record.offset);
    append(bytes, values.data(), record.bytes);
    std::memcpy(bytes.data() + c * sizeof record, &record, sizeof record);
  }
  return bytes;
}

SentWindows windows_to_send(const View& view, std::int64_t epoch, std::int64_t batch) {
  const std::vector<std::int64_t> values = view.batch_windows(epoch, batch);
  const std::size_t columns = 1 + view.window_dims().size();
  const std::size_t size = values.size() * sizeof values[0];
  const WindowsRecord record{static_cast<std::uint32_t>(values.size() / columns),
                             size > kMaxInline ? 1u : 0u};
  SentWindows sent;
  append(sent.bytes, &record, sizeof record);
  if (record.attached == 0) {
    append(sent.bytes, values.data(), size);
    return sent;
  }
  auto file = std::make_shared<MemoryFile>(MemoryFiles(false).create("batchfs-windows", size));
  std::memcpy(file->data(), values.data(), size);
  file->seal();
  sent.file = std::move(file);
  return sent;
}

}  // namespace batchfs::handoff
