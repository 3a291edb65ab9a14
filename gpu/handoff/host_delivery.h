#pragma once
// Mode shm: the engine's memory files themselves. Nothing is copied, and all readers of a batch
// share its memory. Released memory is reused.

#include "engine/pipeline/engine.h"
#include "engine/view/order/order.h"
#include "gpu/handoff/delivery.h"

namespace batchfs::handoff {

class HostDelivery final : public Delivery {
 public:
  /// `engine` outlives it.
  explicit HostDelivery(Engine& engine) : engine_(engine) {}

  Mode mode() const override { return Mode::shm; }
  bool serves(const HelloMessage& hello) const override {
    return (hello.kinds & bit(MemoryKind::host)) != 0;
  }
  std::uint64_t open(BatchRequest request, Order order, Done done) override;
  void cancel(std::uint64_t opened) override { engine_.cancel(opened); }
  std::uint64_t bytes(const View& view, std::int64_t batch) const override;
  std::uint64_t limit() const override { return engine_.budget().limit(); }
  void on_idle() override { engine_.memory_files().keep_spares(0); }

 private:
  Engine& engine_;
  /// Shared with batches in flight: the engine may finish them after this is destroyed.
  const std::shared_ptr<std::atomic<std::uint64_t>> last_id_ =
      std::make_shared<std::atomic<std::uint64_t>>(0);
};

}  // namespace batchfs::handoff
