#pragma once
// Sources of the hand-off's batches: one Delivery for each way to pass them to a reader. The server
// knows leases, streams and sockets; a delivery knows memory.

#include <array>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/pipeline/prefetch/prefetcher.h"
#include "engine/view/order/order.h"
#include "gpu/handoff/protocol.h"

namespace batchfs::handoff {

/// A batch that is handed over. Immutable; its memory stays unchanged as long as someone holds it.
struct DeliveredBatch {
  struct Memory {
    std::uint64_t id = 0;  // of this piece of memory, the same wherever it is used again
    std::uint64_t size = 0;
    MemoryKind kind = MemoryKind::host;
    int fd =
        -1;  // mapped by the reader; owned by `held`, or by the delivery; none for MemoryKind::own
    bool transient = true;  // belongs to this batch alone
  };
  struct Tensor {
    std::uint32_t memory = 0;  // which of the memories
    std::uint64_t offset = 0, bytes = 0;
  };
  std::vector<Memory> memories;
  std::vector<Tensor> tensors;  // one per tensor of the view, C order
  std::shared_ptr<const void> held;
  /// With the numbers and windows of its samples, as write_windows() writes them; of `held`. Null:
  /// they are made when it is sent.
  const MemoryFile* windows = nullptr;
  Fallback fallback = Fallback::none;
};

/// A GPU that this build has no kernel for.
struct UnsupportedGpu {
  std::array<std::uint8_t, 16> uuid;
  std::string why;  // in the words of why_no_kernel_for()
};

/// Thread-safe. Outlives the server.
class Delivery {
 public:
  virtual ~Delivery() = default;

  virtual Mode mode() const = 0;
  /// Can this delivery serve a reader that maps these kinds of memory and wants batches on this
  /// device?
  virtual bool serves(const HelloMessage& hello) const = 0;

  /// A delivery for one connection alone, with a descriptor for its reader; null if this delivery
  /// serves all connections.
  struct Session {
    std::shared_ptr<Delivery> delivery;
    int fd = -1;  // the caller's
  };
  virtual Session session(const HelloMessage&) { return {}; }

  /// How a reader requests batches: one after the other, or one by its number.
  enum class Order { stream, single };
  using Done = std::function<void(std::shared_ptr<const DeliveredBatch>, std::exception_ptr)>;
  /// Requests a batch. Calls `done` once when it is complete, possibly before this returns, from
  /// any thread. Returns the argument of cancel(); 0 if `done` was called already. The delivery
  /// chooses the request's format.
  virtual std::uint64_t open(BatchRequest request, Order order, Done done) = 0;
  /// The reader went away: `done` is called with Error{interrupted}, unless it has been called.
  virtual void cancel(std::uint64_t opened) = 0;

  /// How many batches of a stream may be open or held before one is released; each beyond that
  /// comes from the host. Batches are opened ahead of a reader only up to this number.
  virtual std::size_t slots(const BatchRequest&) const { return SIZE_MAX; }

  /// From now on, memory that was handed over is not reused, even when returned: its readers'
  /// connections end, and they may still hold batches.
  virtual void freeze() {}

  /// Size in memory of a batch, without making it.
  virtual std::uint64_t bytes(const View& view, std::int64_t batch) const = 0;
  /// Bytes available for all batches that readers hold.
  virtual std::uint64_t limit() const = 0;
  /// The part of limit() that is host memory.
  virtual std::uint64_t host_limit() const { return limit(); }
  /// The last reader has left.
  virtual void on_idle() {}
};

}  // namespace batchfs::handoff
