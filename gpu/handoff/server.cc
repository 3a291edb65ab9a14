#include "gpu/handoff/server.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/format.h>

#include "engine/base/blocked_signals.h"
#include "engine/base/system_error.h"

namespace batchfs::handoff {

namespace {

/// The source of an event: the lowest bits are the kind, the rest is the reader's number.
enum : std::uint64_t { kSocket = 0, kProcess = 1, kListener = 2, kInbox = 3 };
constexpr auto kPause = std::chrono::milliseconds(100);  // when descriptors have run out
constexpr auto kShortPause = std::chrono::milliseconds(5);

void watch(int epoll, int operation, int fd, std::uint32_t events, std::uint64_t what) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = what;
  if (::epoll_ctl(epoll, operation, fd, &event) != 0)
    throw Error(ErrorCode::internal,
                fmt::format("watching a reader: {}", describe_system_error(errno)));
}

}  // namespace

struct HandoffServer::Inbox {
  Inbox() : wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (wake < 0)
      throw Error(ErrorCode::no_memory, fmt::format("eventfd: {}", describe_system_error(errno)));
  }
  ~Inbox() { ::close(wake); }

  void put(Completion completion) {
    {
      const std::lock_guard lock(mutex);
      if (closed) return;
      completions.push_back(std::move(completion));
      if (completions.size() > 1 || std::this_thread::get_id() == owner) return;
    }
    rouse();
  }
  void put_views(SharedViews views_of_now) {
    {
      const std::lock_guard lock(mutex);
      if (closed) return;
      views = std::move(views_of_now);
    }
    rouse();
  }
  std::optional<SharedViews> take_views() {
    const std::lock_guard lock(mutex);
    return std::exchange(views, std::nullopt);
  }
  std::vector<Completion> take() {
    const std::lock_guard lock(mutex);
    return std::exchange(completions, {});
  }
  void close() {
    std::vector<Completion> dropped;  // their memory is freed without the lock
    const std::lock_guard lock(mutex);
    closed = true;
    dropped.swap(completions);
  }
  void rouse() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake, &one, sizeof one);
  }

  const int wake;
  std::thread::id owner;  // reads the inbox itself
  std::atomic<bool> stopping{false};
  std::mutex mutex;
  std::vector<Completion> completions;
  std::optional<SharedViews> views;  // for new readers
  bool closed = false;
};

HandoffServer::Reader::~Reader() {
  if (process >= 0) ::close(process);
}

HandoffServer::HandoffServer(Options options, Listener listener, Log& log)
    : options_(std::move(options)),
      listener_(std::move(listener)),
      log_(log),
      inbox_(std::make_shared<Inbox>()) {
  context_.views =
      share_views(options_.views, std::exchange(options_.held, nullptr), options_.reading);
  options_.views.clear();
  context_.refresh = std::move(options_.refresh);
  context_.reserve = std::move(options_.reserve);
  context_.deliveries = options_.deliveries;
  context_.unsupported_gpus = options_.unsupported_gpus;
  if (options_.state_text) {
    teller_ = std::make_unique<StateTeller>(
        [this](StateText what) { return options_.state_text(*this, what); });
    context_.teller = teller_.get();
  }
  events_ = ::epoll_create1(EPOLL_CLOEXEC);
  if (events_ < 0)
    throw Error(ErrorCode::no_memory, fmt::format("epoll: {}", describe_system_error(errno)));
  watch(events_, EPOLL_CTL_ADD, listener_.fd(), EPOLLIN, kListener);
  watch(events_, EPOLL_CTL_ADD, inbox_->wake, EPOLLIN, kInbox);
  const BlockedSignals blocked;
  thread_ = std::thread([this] { run(); });
}

void HandoffServer::end() {
  if (!thread_.joinable()) return;
  inbox_->stopping = true;
  inbox_->rouse();
  thread_.join();
}

HandoffServer::~HandoffServer() {
  end();
  teller_ = nullptr;  // destroyed first: a text that is being made calls statistics()
  ::close(events_);
}

void HandoffServer::set_views(const std::vector<std::shared_ptr<const View>>& views,
                              const std::shared_ptr<const void>& held,
                              const ReadingRecord& reading) {
  inbox_->put_views(share_views(views, held, reading));
}

HandoffServer::Statistics HandoffServer::statistics() const {
  return {shown_readers_, shown_leases_, shown_bytes_, shown_delivered_};
}

void HandoffServer::publish() {
  shown_readers_ = readers_.size() - greeting_.size();
  shown_leases_ = context_.leases;
  shown_bytes_ = context_.held;
  shown_delivered_ = context_.delivered;
}

void HandoffServer::run() {
  inbox_->owner = std::this_thread::get_id();
  first_reader_deadline_ = Clock::now() + options_.first_reader_time;
  std::vector<epoll_event> events(64);
  while (!inbox_->stopping) {
    const int count =
        ::epoll_wait(events_, events.data(), static_cast<int>(events.size()), timeout());
    for (int i = 0; i < count; ++i) {
      const std::uint64_t what = events[static_cast<std::size_t>(i)].data.u64, id = what >> 2;
      const auto reader = readers_.find(id);
      switch (what & 3) {
        case kListener:
          accept_readers();
          break;
        case kInbox: {
          std::uint64_t times;
          [[maybe_unused]] const ssize_t got = ::read(inbox_->wake, &times, sizeof times);
          break;
        }
        case kProcess:
          settle(id, false);
          break;
        case kSocket:
          if (reader == readers_.end()) break;
          if (events[static_cast<std::size_t>(i)].events & EPOLLOUT)
            settle(id, reader->second.connection->writable());
          if (readers_.contains(id) && (events[static_cast<std::size_t>(i)].events & ~EPOLLOUT))
            settle(id, reader->second.connection->readable());
          break;
      }
      drain_inbox();
    }
    drain_inbox();
    const Clock::time_point now = Clock::now();
    for (const std::uint64_t id : std::set(short_of_descriptors_))
      settle(id, readers_.at(id).connection->writable());
    for (const std::uint64_t id : std::set(greeting_)) {
      if (now < readers_.at(id).deadline) continue;
      readers_.at(id).connection->refuse(
          Error(ErrorCode::timed_out, "the reader did not say Hello"));
      settle(id, false);
    }
    if (!accepting_ && listener_.fd() >= 0 && now >= accept_again_) {
      watch(events_, EPOLL_CTL_ADD, listener_.fd(), EPOLLIN, kListener);
      accepting_ = true;
    }
    publish();
    if (is_unused()) end_unused();
    if (ended_unused_) break;
  }
  listener_.close();
  for (Delivery* delivery : options_.deliveries) delivery->freeze();
  readers_.clear();
  publish();
  inbox_->close();
}

/// Connections that only check for a listener are not readers.
bool HandoffServer::is_unused() const {
  return options_.on_unused && readers_.empty() &&
         (was_read_ || Clock::now() >= first_reader_deadline_);
}

void HandoffServer::end_unused() {
  if (std::exchange(ended_unused_, true)) return;
  listener_.close();
  options_.on_unused();
}

/// Milliseconds until the next deadline; -1 if there is none.
int HandoffServer::timeout() const {
  if (!short_of_descriptors_.empty()) return static_cast<int>(kShortPause.count());
  if (!accepting_) return static_cast<int>(kPause.count());
  const bool awaits_first = options_.on_unused && !was_read_ && readers_.empty();
  if (greeting_.empty() && !awaits_first) return -1;
  Clock::time_point first = awaits_first ? first_reader_deadline_ : Clock::time_point::max();
  for (const std::uint64_t id : greeting_) first = std::min(first, readers_.at(id).deadline);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(first - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

void HandoffServer::accept_readers() {
  if (listener_.fd() < 0) return;
  for (int i = 0; i < 16; ++i) {
    const int socket = ::accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket >= 0) {
      accept_reader(socket);
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno != EAGAIN) {  // no descriptors are left: waiting readers keep waiting
      log_.warning(fmt::format("hand-off: a reader cannot be accepted now: {}",
                               describe_system_error(errno)));
      watch(events_, EPOLL_CTL_DEL, listener_.fd(), 0, 0);
      accepting_ = false;
      accept_again_ = Clock::now() + kPause;
    }
    return;
  }
}

void HandoffServer::accept_reader(int socket) {
  const std::uint64_t id = ++last_reader_;
  ucred peer{};
  socklen_t size = sizeof peer;
  const bool known = ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
  const std::shared_ptr<ProcessShare> process = share_of(peer.pid);
  auto connection = std::make_unique<Connection>(
      id, socket, context_, process,
      [inbox = inbox_](Completion completion) { inbox->put(std::move(completion)); });
  if (!known || (peer.uid != ::geteuid() && peer.uid != 0)) {
    connection->refuse(
        Error(ErrorCode::access_denied,
              "batches are handed over to the user that batchfs runs as; read the mount's files, "
              "or run batchfs as this user"));
    return;
  }
  if (readers_.size() >= options_.most_readers) {
    connection->refuse(
        Error(ErrorCode::no_memory, fmt::format("there are {} readers already", readers_.size())));
    return;
  }
  if (process->connections > std::max<std::size_t>(options_.most_readers / 2, 2)) {
    connection->refuse(
        Error(ErrorCode::no_memory,
              fmt::format("process {} has {} connections already; close some of its readers",
                          peer.pid, process->connections - 1)));
    return;
  }
  Reader& reader = readers_[id];
  reader.connection = std::move(connection);
  reader.deadline = Clock::now() + options_.greeting_time;
  reader.events = EPOLLIN;
  greeting_.insert(id);
  // A process outside of our namespace has no number here; the end of its socket must suffice.
  if (peer.pid > 0) reader.process = static_cast<int>(::syscall(SYS_pidfd_open, peer.pid, 0));
  try {
    watch(events_, EPOLL_CTL_ADD, socket, reader.events, id << 2 | kSocket);
    if (reader.process >= 0)
      watch(events_, EPOLL_CTL_ADD, reader.process, EPOLLIN, id << 2 | kProcess);
  } catch (const Error& error) {
    reader.connection->refuse(error);
    settle(id, false);
  }
}

/// Connections of one process count together. A process without a number here is in another PID
/// namespace.
std::shared_ptr<ProcessShare> HandoffServer::share_of(pid_t process) {
  std::erase_if(processes_, [](const auto& entry) { return entry.second.expired(); });
  std::shared_ptr<ProcessShare> share = process > 0 ? processes_[process].lock() : nullptr;
  if (share == nullptr) share = std::make_shared<ProcessShare>(most_batches_);
  if (process > 0) processes_[process] = share;
  return share;
}

/// Delivers the finished batches to their requesters. Sending may open more, which may be ready at
/// once.
void HandoffServer::drain_inbox() {
  if (auto views = inbox_->take_views()) context_.views = std::move(*views);
  for (;;) {
    std::vector<Completion> completions = inbox_->take();
    if (completions.empty()) return;
    for (Completion& completion : completions) {
      const std::uint64_t id = completion.connection;
      const auto reader = readers_.find(id);
      if (reader != readers_.end())
        settle(id, reader->second.connection->completed(std::move(completion)));
    }
  }
}

/// Call after an event of a connection: ends it, or updates the events that its socket is watched
/// for.
void HandoffServer::settle(std::uint64_t id, bool goes_on) {
  const auto it = readers_.find(id);
  if (it == readers_.end()) return;
  Reader& reader = it->second;
  // Counts a reader, too, that left as soon as it got its answer.
  was_read_ = was_read_ || reader.connection->greeted();
  if (!goes_on) {
    // Before its connection: a reader that has seen the end of that finds another server, or none.
    if (options_.on_unused && was_read_ && readers_.size() == 1) end_unused();
    greeting_.erase(id);
    short_of_descriptors_.erase(id);
    readers_.erase(it);
    if (readers_.empty())
      for (Delivery* delivery : options_.deliveries) delivery->on_idle();
    return;
  }
  const Connection& connection = *reader.connection;
  if (connection.has_purpose()) greeting_.erase(id);
  if (connection.short_of_descriptors())
    short_of_descriptors_.insert(id);
  else
    short_of_descriptors_.erase(id);
  const std::uint32_t events =
      (connection.deaf() ? 0u : EPOLLIN) |
      (connection.blocked() && !connection.short_of_descriptors() ? EPOLLOUT : 0u);
  if (events == reader.events) return;
  reader.events = events;
  watch(events_, EPOLL_CTL_MOD, connection.socket(), events, id << 2 | kSocket);
}

}  // namespace batchfs::handoff
