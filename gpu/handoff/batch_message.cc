#include "gpu/handoff/batch_message.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "gpu/handoff/batch_windows.h"
#include "gpu/handoff/message_bytes.h"

namespace batchfs::handoff {

Outgoing batch_message(const SharedView& shared, const DeliveredBatch& delivered,
                       BatchMessage message, std::uint16_t version, AttachedMemory& attached,
                       const Reserve& reserve) {
  const View& view = *shared.view;
  const std::vector<Dims> shapes = view.shapes(message.batch);
  SentWindows windows;
  if (version >= 2)
    windows = windows_to_send(view, message.epoch, message.batch, delivered, reserve);
  Outgoing out;
  AttachedMemory now = attached;  // `attached` stays unchanged if this throws
  append(out.bytes, &message, sizeof message);
  for (const DeliveredBatch::Memory& memory : delivered.memories) {
    MemoryRecord record{memory.id, memory.size, memory.kind, 0};
    std::uint64_t& last = now[memory.kind];
    if (memory.kind != MemoryKind::own &&
        (memory.transient || std::exchange(last, memory.id) != memory.id)) {
      record.flags |= kMemoryAttached;
      out.descriptors.push_back(memory.fd);
    }
    if (memory.transient) record.flags |= kMemoryTransient;
    append(out.bytes, &record, sizeof record);
  }
  for (std::size_t t = 0; t < delivered.tensors.size(); ++t) {
    const DeliveredBatch::Tensor& tensor = delivered.tensors[t];
    const TensorRecord record{tensor.offset, tensor.bytes, tensor.memory,
                              static_cast<std::uint32_t>(shapes[t].size())};
    append(out.bytes, &record, sizeof record);
  }
  for (const Dims& shape : shapes) {
    for (const std::int64_t n : shape) append(out.bytes, &n, sizeof n);
    message.dim_count += static_cast<std::uint32_t>(shape.size());
  }
  append(out.bytes, windows.bytes.data(), windows.bytes.size());
  if (windows.file != nullptr) out.descriptors.push_back(windows.file->fd());
  if (out.bytes.size() > kMaxMessage || out.descriptors.size() > kMaxDescriptors)
    throw Error(ErrorCode::not_supported, "the view has more tensors than one message can tell of");
  message.fallback = delivered.fallback;
  const std::int64_t before = message.batch * view.batch_size();
  message.samples = shared.remainder == Remainder::keep
                        ? std::min(view.batch_size(), view.epoch_samples() - before)
                        : view.batch_size();
  message.memory_count = static_cast<std::uint32_t>(delivered.memories.size());
  message.tensor_count = static_cast<std::uint32_t>(delivered.tensors.size());
  std::memcpy(out.bytes.data(), &message, sizeof message);
  finish<BatchMessage>(out.bytes, MessageType::batch, version);
  attached = std::move(now);
  out.held = delivered.held;
  out.windows = std::move(windows.file);
  return out;
}

}  // namespace batchfs::handoff
