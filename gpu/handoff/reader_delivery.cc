#include "gpu/handoff/reader_delivery.h"

#include <algorithm>
#include <cerrno>

#include <sys/socket.h>
#include <unistd.h>

#include "engine/base/system_error.h"
#include "engine/view/order/order.h"
#include "gpu/handoff/reader_slots.h"

namespace batchfs::handoff {

namespace {

constexpr std::uint64_t kMiB = 1 << 20;

void add(FallbackLog::Counts& to, const FallbackLog::Counts& more) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += more[i];
}

}  // namespace

/// A connection's batches. Whatever holds one of them holds the session.
class ReaderDelivery::Reading final : public Delivery,
                                      public std::enable_shared_from_this<Reading> {
 public:
  /// Owns `channel`.
  Reading(Engine& engine, SocketWatcher& watcher, TimerThread& timers, Delivery& host, Log& log,
          int channel, std::uint64_t memory)
      : channel_{channel},
        batches_({.uuid = {},
                  .memory = memory,
                  .one_reader = true,
                  .make_stream =
                      [this, &engine, &watcher](const BatchRequest& first, std::uint64_t most) {
                        return reader_slots(engine, watcher, channel_.fd, ++last_stream_, first,
                                            most);
                      },
                  .workers = &engine.executor(),
                  .timers = &timers},
                 host, engine.counters(), log) {}

  Mode mode() const override { return Mode::client; }
  bool serves(const HelloMessage&) const override { return true; }
  std::uint64_t open(BatchRequest request, Order order, Done done) override {
    return batches_.open(
        std::move(request), order,
        [self = shared_from_this(), done = std::move(done)](
            std::shared_ptr<const DeliveredBatch> delivered, std::exception_ptr error) {
          if (delivered == nullptr) return done(nullptr, error);
          auto kept = std::make_shared<DeliveredBatch>(*delivered);
          struct Held {
            std::shared_ptr<const Reading> session;  // goes last
            std::shared_ptr<const DeliveredBatch> delivered;
          };
          kept->held = std::make_shared<const Held>(Held{self, std::move(delivered)});
          done(std::move(kept), nullptr);
        });
  }
  void cancel(std::uint64_t opened) override { batches_.cancel(opened); }
  std::size_t slots(const BatchRequest& request) const override { return batches_.slots(request); }
  void freeze() override { batches_.freeze(); }
  std::uint64_t bytes(const View& view, std::int64_t batch) const override {
    return batches_.bytes(view, batch);
  }
  std::uint64_t limit() const override { return batches_.limit(); }
  std::uint64_t host_limit() const override { return batches_.host_limit(); }
  DeviceDelivery::Statistics statistics() const { return batches_.statistics(); }

  /// Streams that wait for the reader end.
  void hang_up() { ::shutdown(channel_.fd, SHUT_RDWR); }

 private:
  struct Channel {
    const int fd;
    ~Channel() { ::close(fd); }
  };
  const Channel channel_;  // goes after the streams that use it
  std::atomic<std::uint64_t> last_stream_{0};
  DeviceDelivery batches_;
};

ReaderDelivery::ReaderDelivery(Engine& engine, Delivery& host, Log& log)
    : engine_(engine), host_(host), log_(log) {}

ReaderDelivery::~ReaderDelivery() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return sessions_.empty(); });
}

bool ReaderDelivery::serves(const HelloMessage& hello) const {
  return (hello.kinds & bit(MemoryKind::own)) != 0 && (hello.kinds & bit(MemoryKind::host)) != 0 &&
         hello.device_mib > 0;
}

Delivery::Session ReaderDelivery::session(const HelloMessage& hello) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    throw Error(ErrorCode::no_memory,
                std::string("a socket for programs: ") + describe_system_error(errno));
  auto* session =
      new Reading(engine_, watcher_, timers_, host_, log_, ends[0], hello.device_mib * kMiB);
  {
    const std::lock_guard lock(mutex_);
    sessions_.push_back(session);
  }
  return {std::shared_ptr<Reading>(session,
                                   [this](Reading* ended) {
                                     ended->hang_up();
                                     {
                                       const std::lock_guard lock(mutex_);
                                       ++ending_;
                                     }
                                     timers_.post(0, [this, ended] { end_session(ended); });
                                   }),
          ends[1]};
}

std::uint64_t ReaderDelivery::open(BatchRequest, Order, Done) {
  throw Error(ErrorCode::internal, "a batch was asked for without a session");
}

void ReaderDelivery::end_session(Reading* session) {
  const auto last = session->statistics();
  {
    const std::lock_guard lock(mutex_);
    std::erase(sessions_, session);
    --ending_;
    ended_.batches += last.batches;
    ended_.bytes += last.bytes;
    add(ended_.fallbacks, last.fallbacks);
  }
  delete session;
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

ReaderDelivery::Statistics ReaderDelivery::statistics() const {
  const std::lock_guard lock(mutex_);
  Statistics now = ended_;
  now.readers = sessions_.size() - ending_;
  for (const Reading* session : sessions_) {
    const auto its = session->statistics();
    now.batches += its.batches;
    now.bytes += its.bytes;
    add(now.fallbacks, its.fallbacks);
  }
  return now;
}

}  // namespace batchfs::handoff
