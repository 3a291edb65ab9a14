#include "gpu/handoff/batch_windows.h"

#include <cstring>

#include <fmt/format.h>

#include "engine/view/axes.h"
#include "engine/view/tensors/tensor_layout.h"
#include "gpu/handoff/message_bytes.h"
#include "gpu/handoff/protocol.h"

namespace batchfs::handoff {

namespace {

/// A message with more of them would fill the socket's buffer by itself.
constexpr std::uint64_t kMaxInline = 32 << 10;

/// Bytes of the numbers and windows of a batch's samples.
std::uint64_t windows_size(const View& view, std::int64_t batch) {
  return static_cast<std::uint64_t>(view.sample_count(batch)) * (1 + view.axes().windows.size()) *
         sizeof(std::int64_t);
}

/// Calls `use(record, values)` for each coordinate; returns the bytes of all.
template <class Use>
std::uint64_t lay_out(const View& view, Use&& use) {
  std::uint64_t end = view.coordinates().size() * sizeof(CoordinateRecord);
  for (const ViewCoordinate& coordinate : view.coordinates()) {
    const Buffer& values = coordinate.values->data;
    const CoordinateRecord record{(end + 7) / 8 * 8, values.size()};
    end = record.offset + record.bytes;
    use(record, values);
  }
  return end;
}

}  // namespace

std::uint64_t coordinates_size(const View& view) {
  return lay_out(view, [](const CoordinateRecord&, const Buffer&) {});
}

void write_coordinates(const View& view, std::byte* out) {
  std::byte* next = out;
  lay_out(view, [&](const CoordinateRecord& record, const Buffer& values) {
    std::memcpy(next, &record, sizeof record);
    next += sizeof record;
    if (record.bytes > 0) std::memcpy(out + record.offset, values.data(), record.bytes);
  });
}

std::uint64_t windows_file_size(const View& view, std::int64_t batch) {
  const std::uint64_t size = windows_size(view, batch);
  return size > kMaxInline ? size : 0;
}

void write_windows(const View& view, std::int64_t epoch, std::int64_t batch, std::byte* out) {
  const std::int64_t samples = view.sample_count(batch);
  if (samples != view.row_count(batch)) {  // xbatcher: a sample is made of many rows
    const std::vector<std::int64_t> values = view.batch_windows(epoch, batch);
    std::memcpy(out, values.data(), values.size() * sizeof values[0]);
    return;
  }
  std::byte* windows = out + static_cast<std::size_t>(samples) * sizeof(std::int64_t);
  for_each_range(samples, [&](RowRange range) {
    const std::vector<std::int64_t> numbers = view.samples_in(epoch, batch, range);
    std::memcpy(out, numbers.data(), numbers.size() * sizeof numbers[0]);
    out += numbers.size() * sizeof numbers[0];
    for (const Dims& starts : view.window_starts(epoch, batch, range)) {
      std::memcpy(windows, starts.begin(), starts.size() * sizeof starts[0]);
      windows += starts.size() * sizeof starts[0];
    }
  });
}

SentWindows windows_to_send(const View& view, std::int64_t epoch, std::int64_t batch,
                            const DeliveredBatch& delivered, const Reserve& reserve) {
  const std::uint64_t size = windows_file_size(view, batch);
  const WindowsRecord record{static_cast<std::uint32_t>(view.sample_count(batch)),
                             size > 0 ? 1u : 0u};
  SentWindows sent;
  append(sent.bytes, &record, sizeof record);
  if (size == 0) {
    const std::vector<std::int64_t> values = view.batch_windows(epoch, batch);
    append(sent.bytes, values.data(), values.size() * sizeof values[0]);
    return sent;
  }
  if (delivered.windows != nullptr) {
    sent.file = {delivered.held, delivered.windows};
    return sent;
  }
  struct Made {
    Budget::Reservation memory;
    MemoryFile file;
  };
  const auto made = std::make_shared<Made>();
  if (reserve)
    made->memory =
        reserve(size, fmt::format("the numbers of the samples of a batch of {}", record.samples));
  made->file = MemoryFiles(false).create("batchfs-windows", size);
  write_windows(view, epoch, batch, made->file.data());
  made->file.seal();
  sent.file = {made, &made->file};
  return sent;
}

}  // namespace batchfs::handoff
