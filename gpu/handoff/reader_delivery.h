#pragma once
// Mode client: each reader decodes in its own process. One session per connection, with a stream of
// programs instead of DeviceDelivery's stream of slots; batches that programs cannot make come from
// the host delivery.

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/base/log.h"
#include "engine/pipeline/engine.h"
#include "engine/store/timer_thread.h"
#include "engine/view/order/order.h"
#include "gpu/handoff/device_delivery.h"
#include "gpu/handoff/socket_watcher.h"

namespace batchfs::handoff {

class ReaderDelivery final : public Delivery {
 public:
  /// `engine` and `host` outlive it.
  ReaderDelivery(Engine& engine, Delivery& host, Log& log);
  /// Waits for the sessions, which are unused by then.
  ~ReaderDelivery() override;

  Mode mode() const override { return Mode::client; }
  bool serves(const HelloMessage& hello) const override;
  Session session(const HelloMessage& hello) override;
  /// Batches come from sessions.
  std::uint64_t open(BatchRequest request, Order order, Done done) override;
  void cancel(std::uint64_t) override {}
  std::uint64_t bytes(const View& view, std::int64_t batch) const override {
    return host_.bytes(view, batch);
  }
  std::uint64_t limit() const override { return host_.limit(); }

  /// Sessions now, and the batches of all that there were.
  struct Statistics {
    std::uint64_t readers = 0, batches = 0, bytes = 0;
    FallbackLog::Counts fallbacks{};  // batches that came from the host
  };
  Statistics statistics() const;
  /// For other deliveries of the process, which end before.
  TimerThread& timers() { return timers_; }

 private:
  class Reading;
  void end_session(Reading* session);

  Engine& engine_;
  Delivery& host_;
  Log& log_;
  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::vector<Reading*> sessions_;
  std::uint64_t ending_ = 0;  // of them
  Statistics ended_;          // of sessions that are gone
  SocketWatcher watcher_;
  TimerThread timers_;  // last: ends sessions, since that waits and the server must not
};

}  // namespace batchfs::handoff
