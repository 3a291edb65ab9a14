#pragma once
// Mode client: each reader decodes in its own process. One session per connection, with a stream of
// programs instead of DeviceDelivery's stream of slots; batches that programs cannot make come from
// the host delivery.

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/base/log.h"
#include "engine/pipeline/engine.h"
#include "gpu/handoff/device_delivery.h"

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

 private:
  class Reading;
  void end_sessions();

  Engine& engine_;
  Delivery& host_;
  Log& log_;
  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::vector<Reading*> sessions_;
  /// Ended by another thread: the end waits for threads, and the server must not.
  std::vector<std::unique_ptr<Reading>> ending_;
  Statistics ended_;  // of sessions that are gone
  bool stopping_ = false;
  std::thread ender_;
};

}  // namespace batchfs::handoff
