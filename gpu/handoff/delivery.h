#pragma once
// Where the batches of the hand-off come from: one Delivery for each way to give them to a reader.
// The server knows leases, streams and sockets; a delivery knows memory.

#include <array>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/pipeline/prefetch/prefetcher.h"
#include "gpu/handoff/protocol.h"

namespace batchfs::handoff {

/// A batch as it is handed over. Immutable; its memory stays as it is for as long as someone holds
/// it.
struct DeliveredBatch {
  struct Memory {
    std::uint64_t id = 0;  // of this piece of memory, the same wherever it is used again
    std::uint64_t size = 0;
    MemoryKind kind = MemoryKind::host;
    int fd =
        -1;  // what the reader maps; owned by `held`, or by the delivery; none for MemoryKind::own
    bool transient = true;  // belongs to this batch alone
  };
  struct Tensor {
    std::uint32_t memory = 0;  // which of the memories
    std::uint64_t offset = 0, bytes = 0;
  };
  std::vector<Memory> memories;
  std::vector<Tensor> tensors;  // one per tensor of the view, C order
  std::shared_ptr<const void> held;
  Fallback fallback = Fallback::none;
};

/// A GPU that this build has no kernel for.
struct UnsupportedGpu {
  std::array<std::uint8_t, 16> uuid;
  std::string why;  // as why_no_kernel_for() words it
};

/// Thread-safe. Outlives the server.
class Delivery {
 public:
  virtual ~Delivery() = default;

  virtual Mode mode() const = 0;
  /// A reader that can map these kinds of memory, and wants batches on this device, can be served.
  virtual bool serves(const HelloMessage& hello) const = 0;

  /// What serves one connection alone, with a descriptor for its reader; null where this delivery
  /// serves all.
  struct Session {
    std::shared_ptr<Delivery> delivery;
    int fd = -1;  // the caller's
  };
  virtual Session session(const HelloMessage&) { return {}; }

  /// How a reader asks: for batches one behind the other, or for one by its number.
  enum class Order { stream, single };
  using Done = std::function<void(std::shared_ptr<const DeliveredBatch>, std::exception_ptr)>;
  /// Gives the batch when it is complete: `done` is called once, possibly before this returns, from
  /// any thread. Returns what cancel() takes, 0 when `done` was called already. The request's
  /// format is the delivery's to choose.
  virtual std::uint64_t open(BatchRequest request, Order order, Done done) = 0;
  /// The reader went away: `done` is called with Error{interrupted}, unless it has been called.
  virtual void cancel(std::uint64_t opened) = 0;

  /// How many batches of a stream may be open or held before one is released: each beyond comes
  /// from the host. Batches are opened ahead of a reader only up to here.
  virtual std::size_t slots(const BatchRequest&) const { return SIZE_MAX; }

  /// From here on memory that was handed over is not reused, even when returned: its
  /// readers' connections end, and they may hold batches still.
  virtual void freeze() {}

  /// The memory that a batch takes, without making it.
  virtual std::uint64_t bytes(const View& view, std::int64_t batch) const = 0;
  /// What there is for all batches that readers hold.
  virtual std::uint64_t limit() const = 0;
  /// Of that, in host memory.
  virtual std::uint64_t host_limit() const { return limit(); }
  /// The last reader has left.
  virtual void on_idle() {}
};

}  // namespace batchfs::handoff
