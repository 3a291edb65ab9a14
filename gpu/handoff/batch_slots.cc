#include "gpu/handoff/batch_slots.h"

#include <unistd.h>

#include "gpu/stream/batch_stream.h"

namespace batchfs::handoff {

namespace {

class BatchSlots final : public SlotStream {
 public:
  BatchSlots(std::shared_ptr<const View> view, Engine& engine,
             const gpu::BatchStream::Options& options)
      : stream_(std::move(view), engine, options),
        slots_(options.slots),
        fd_(stream_.slots().export_fd()) {}
  ~BatchSlots() override { ::close(fd_); }

  std::optional<Slot> try_next() override {
    if (!stream_.ready()) return std::nullopt;
    auto batch = stream_.next();
    if (!batch) throw Error(ErrorCode::not_found, "there is no batch behind the last epoch's");
    Slot slot;
    for (std::size_t t = 0; t < batch->tensors.size(); ++t)
      slot.tensors.push_back({batch->tensors[t].offset,
                              static_cast<std::uint64_t>(element_count(batch->tensors[t].shape)) *
                                  stream_.view().tensors()[t].type.itemsize});
    slot.why_host = batch->why_on_cpu;
    slot.release = [this, taken = *std::move(batch)] { stream_.release(taken); };
    return slot;
  }
  void on_change(std::function<void()> changed) override { stream_.on_change(std::move(changed)); }
  bool broken() const override { return stream_.broken(); }
  std::uint32_t slots() const override { return slots_; }
  int fd() const override { return fd_; }
  std::uint64_t size() const override { return stream_.slots().size(); }
  std::uint64_t memory() const override { return stream_.device_memory(); }

 private:
  gpu::BatchStream stream_;
  const std::uint32_t slots_;
  const int fd_;
};

}  // namespace

std::unique_ptr<SlotStream> batch_slots(Engine& engine, int device, const BatchRequest& first,
                                        std::uint64_t memory) {
  gpu::BatchStream::Options options;
  options.device = device;
  options.memory = memory;
  options.rank = first.rank;
  options.world = first.world;
  options.first_epoch = first.epoch;
  options.first_batch = first.batch;
  options.slots = gpu::slots_within(*first.view, memory, {kMaxSlots, kUsualSlots, kMinSlots});
  return std::make_unique<BatchSlots>(first.view, engine, options);
}

}  // namespace batchfs::handoff
