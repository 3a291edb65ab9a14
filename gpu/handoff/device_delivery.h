#pragma once
// Mode server: batches in slots of device memory, which the readers map.
//
// One feed for each (view, rank, world) that is read in order: a stream of batches and its slots. A
// thread makes its stream, and ends; from then on a worker takes its batches when there are some.
// Readers of the same rank share its batches as long as somebody holds them; if they read
// at two places, there are two feeds. Batches that no feed can deliver come from the host delivery,
// in host memory, and the reader copies them. Each is counted under its Fallback, and the first of
// each kind of a view is logged.
//
// Memory. A feed gets half of the free memory, and up to three quarters if all batches are for one
// reader and are large. A feed without readers is kept for `idle_time`, because its reader may
// continue. When more than one such share of all memory is in use, or a new feed needs more than is
// free, feeds without readers end first, the longest unused before the others.

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/log.h"
#include "engine/pipeline/executor.h"
#include "engine/store/timer_thread.h"
#include "engine/telemetry/counters.h"
#include "engine/view/order/order.h"
#include "gpu/handoff/delivery.h"
#include "gpu/handoff/fallback_log.h"

namespace batchfs::handoff {

/// Slots of a stream: the ones that a reader requests at first, and two that are filled meanwhile;
/// fewer if memory is short.
constexpr std::uint32_t kUsualSlots = 3, kMaxSlots = kUsualSlots + 2, kMinSlots = 2;

/// Batches of one rank, in order, in slots. Only the constructor's work waits.
class SlotStream {
 public:
  struct Tensor {
    std::uint64_t offset = 0, bytes = 0;  // in the slots' memory
  };
  struct Slot {
    std::vector<Tensor> tensors;
    std::function<void()> release;  // from any thread, once, before the stream's end
    std::string why_host;           // why the CPU made it; empty: the GPU did
  };
  virtual ~SlotStream() = default;
  /// The next batch; nullopt where it is not complete. Throws its error, not_supported if only the
  /// host can make it: later batches still come, unless broken(); then interrupted if its only
  /// reader has left.
  virtual std::optional<Slot> try_next() = 0;
  /// `changed` is called when try_next() may return something else, by any thread and perhaps with
  /// locks held. Called once.
  virtual void on_change(std::function<void()> changed) = 0;
  virtual bool broken() const = 0;
  /// From any thread: the stream's end waits for no reader.
  virtual void stop() {}
  virtual std::uint32_t slots() const = 0;
  /// The slots' memory, for the stream's life.
  virtual MemoryKind kind() const { return MemoryKind::device_fd; }
  virtual std::uint64_t id() const { return 0; }  // 0: assigned when delivered
  virtual int fd() const = 0;
  virtual std::uint64_t size() const = 0;
  /// Device memory in all.
  virtual std::uint64_t memory() const = 0;
};

class DeviceDelivery final : public Delivery {
 public:
  using Fallback = handoff::Fallback;

  struct Options {
    std::array<std::uint8_t, 16> uuid{};          // of the device
    std::uint64_t memory = 0;                     // of the device, for all feeds
    std::chrono::milliseconds idle_time{30'000};  // after which a feed that nobody reads is ended
    /// All batches are for one reader: when it starts a new stream, it has left the old one, and
    /// large batches get a larger share of the memory.
    bool one_reader = false;
    /// Makes the stream that begins with this batch, in so much memory. Throws.
    std::function<std::unique_ptr<SlotStream>(const BatchRequest&, std::uint64_t memory)>
        make_stream;
    const Executor* workers = nullptr;  // take batches of streams; outlive it
    TimerThread* timers = nullptr;      // ends streams; outlives it
  };
  /// `host` and `counters`, those of all that the process reads, outlive it.
  DeviceDelivery(Options options, Delivery& host, Counters& counters, Log& log);
  /// Precondition: nobody holds its batches.
  ~DeviceDelivery() override;

  Mode mode() const override { return Mode::server; }
  bool serves(const HelloMessage& hello) const override;
  std::uint64_t open(BatchRequest request, Order order, Done done) override;
  void cancel(std::uint64_t opened) override;
  std::size_t slots(const BatchRequest& request) const override;
  void freeze() override { frozen_ = true; }
  std::uint64_t bytes(const View& view, std::int64_t batch) const override {
    return host_.bytes(view, batch);
  }
  /// Batches may lie in either memory.
  std::uint64_t limit() const override { return host_.limit() + options_.memory; }
  std::uint64_t host_limit() const override { return host_.limit(); }

  struct Statistics {
    std::uint64_t batches = 0, bytes = 0, memory = 0,
                  feeds = 0;  // delivered in device memory, ever; now
    FallbackLog::Counts fallbacks{};
  };
  Statistics statistics() const;

 private:
  struct Feed;
  struct Waiting {
    std::uint64_t id;
    BatchRequest request;
    Done done;
  };
  using Reason = FallbackLog::Reason;
  struct Opened {
    bool on_host = false;
    std::uint64_t host = 0;  // waiter of the host delivery
    std::shared_ptr<Feed> feed;
    std::int64_t place = 0;
  };

  std::shared_ptr<Feed> feed_for(const BatchRequest& request, std::int64_t place,
                                 Fallback& why_not);
  void begin(const std::shared_ptr<Feed>& feed, const BatchRequest& first);
  void wake(const std::shared_ptr<Feed>& feed);
  void serve(Feed& feed);
  bool serve_one(Feed& feed);
  void finish(Feed& feed, const Reason& reason, bool has_left);
  std::unique_ptr<SlotStream> make_stream(Feed& feed, const BatchRequest& first);
  std::uint64_t share_of(std::uint64_t memory, const BatchRequest& first) const;
  void make_room(std::unique_lock<std::mutex>& lock, const Feed& feed, std::uint64_t most_used);
  void end(const std::shared_ptr<Feed>& feed);
  void take_to_host(std::vector<Waiting>& waiting, std::vector<Waiting>& taken);
  void hand_to_host(Waiting one, const Reason& reason);
  std::uint64_t open_on_host(BatchRequest request, Fallback why, Done done);
  Done from_host(std::uint64_t id, Fallback why, Done done);
  void count(const DeliveredBatch& delivered, std::uint64_t readers) {
    batches_ += readers;
    for (const auto& tensor : delivered.tensors) {
      bytes_ += tensor.bytes * readers;
      counters_.bytes_delivered += tensor.bytes * readers;
    }
  }
  void wake_sweeper() noexcept;
  void tick();
  void sweep();
  void end_idle(bool all);

  const Options options_;
  Delivery& host_;
  Counters& counters_;

  mutable std::mutex mutex_;  // guards the members below, and the feeds
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Feed>> feeds_;
  std::vector<std::shared_ptr<Feed>> ending_;  // for sweep(), until their memory is free
  std::uint64_t ended_ = 0;                    // feeds whose memory is free
  std::map<std::uint64_t, Opened> opened_;
  std::uint64_t last_opened_ = 0, last_memory_ = 0;
  std::uint64_t used_ = 0;  // of options_.memory
  std::atomic<bool> frozen_{false};
  std::atomic<std::uint64_t> batches_{0}, bytes_{0};
  FallbackLog fallbacks_;
  /// The timers' work ends with the delivery.
  struct Timed {
    std::mutex mutex;  // held while it runs. Lock order: before the delivery's mutex.
    bool ended = false;
  };
  const std::shared_ptr<Timed> timed_ = std::make_shared<Timed>();
  Executor executor_;  // last: its work uses the others
};

}  // namespace batchfs::handoff
