#include "gpu/handoff/device_delivery.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "engine/base/strings.h"
#include "engine/view/spec.h"
#include "gpu/handoff/device_feed.h"

namespace batchfs::handoff {

namespace {

using Clock = std::chrono::steady_clock;

/// A feed's share of memory, in batches: the slots of a stream, and decoded chunks of twice that
/// size.
constexpr std::uint64_t kBatchesOfAShare = 3 * kMaxSlots;
/// Feeds of one rank: readers at more places share the host's batches.
constexpr std::size_t kMaxFeedsOfARank = 2;

}  // namespace

DeviceDelivery::DeviceDelivery(Options options, Delivery& host, Counters& counters, Log& log)
    : options_(std::move(options)),
      host_(host),
      counters_(counters),
      fallbacks_(log),
      executor_(*options_.workers, 1) {
  tick();
}

DeviceDelivery::~DeviceDelivery() {
  {
    const std::lock_guard lock(mutex_);
    end_idle(true);
  }
  {
    const std::lock_guard lock(timed_->mutex);  // waits for a sweep
    timed_->ended = true;
  }
  sweep();
  executor_.stop();
}

bool DeviceDelivery::serves(const HelloMessage& hello) const {
  return (hello.kinds & bit(MemoryKind::device_fd)) != 0 &&
         (hello.kinds & bit(MemoryKind::host)) != 0 &&
         std::memcmp(hello.gpu_uuid, options_.uuid.data(), options_.uuid.size()) == 0;
}

/// Precondition: the lock is held. Hands feeds that nobody reads to the sweeper: those past their
/// idle time, or `all`.
void DeviceDelivery::end_idle(bool all) {
  const auto now = Clock::now();
  std::erase_if(feeds_, [&](const std::shared_ptr<Feed>& feed) {
    if (!all && !feed->must_end(now, options_.idle_time)) return false;
    end(feed);
    return true;
  });
  changed_.notify_all();
}

/// Precondition: the lock is held. The caller removes the feed from feeds_.
void DeviceDelivery::end(const std::shared_ptr<Feed>& feed) {
  feed->stopping = true;
  if (feed->stream != nullptr) feed->stream->stop();
  ending_.push_back(feed);
  changed_.notify_all();
  wake_sweeper();
}

void DeviceDelivery::wake_sweeper() noexcept {
  options_.timers->post(0, [this, timed = timed_] {
    const std::lock_guard lock(timed->mutex);
    if (!timed->ended) sweep();
  });
}

/// Looks for feeds past their idle time now and then.
void DeviceDelivery::tick() {
  const auto next = Clock::now() + options_.idle_time / 4;
  options_.timers->post(
      std::chrono::duration_cast<std::chrono::nanoseconds>(next.time_since_epoch()).count(),
      [this, timed = timed_] {
        const std::lock_guard lock(timed->mutex);
        if (timed->ended) return;
        sweep();
        tick();
      });
}

/// Ends and destroys feeds in the timers' thread, so that nobody waits for it.
void DeviceDelivery::sweep() {
  std::unique_lock lock(mutex_);
  end_idle(false);
  while (!ending_.empty()) {
    const std::shared_ptr<Feed> feed = ending_.front();
    lock.unlock();
    if (feed->maker.joinable()) feed->maker.join();
    finish(*feed, {}, false);
    std::unique_ptr<SlotStream> stream;
    {
      const std::scoped_lock both(feed->serving, mutex_);
      stream = std::move(feed->stream);
    }
    stream = nullptr;
    lock.lock();
    std::erase(ending_, feed);
    used_ -= std::exchange(feed->memory, 0);
    ++ended_;
    changed_.notify_all();
  }
}

/// Precondition: the lock is held, `feed` is being made. Ends feeds that nobody reads, the longest
/// unused first, until at most `most_used` of the memory is used, and waits until the memory of all
/// ending feeds is free.
void DeviceDelivery::make_room(std::unique_lock<std::mutex>& lock, const Feed& feed,
                               std::uint64_t most_used) {
  for (;;) {
    changed_.wait(lock, [&] { return feed.stopping || ending_.empty(); });
    if (feed.stopping || used_ <= most_used) return;
    std::shared_ptr<Feed> longest;
    for (const auto& other : feeds_)
      if (other.get() != &feed && other->memory > 0 && other->idle() &&
          (longest == nullptr || other->used < longest->used))
        longest = other;
    if (longest == nullptr) return;
    end(longest);
    std::erase(feeds_, longest);
  }
}

/// A feed's share of `memory`. A single reader has a second feed only if it started a new stream
/// while it still holds batches of the first, so large batches get more than half of the memory.
std::uint64_t DeviceDelivery::share_of(std::uint64_t memory, const BatchRequest& first) const {
  if (!options_.one_reader) return memory / 2;
  return std::clamp(kBatchesOfAShare * bytes(*first.view, first.batch), memory / 2, memory / 4 * 3);
}

/// Runs in the feed's maker, without the lock. Returns null when the feed is stopping; throws the
/// stream's errors, and no_memory if no memory is free.
std::unique_ptr<SlotStream> DeviceDelivery::make_stream(Feed& feed, const BatchRequest& first) {
  std::unique_lock lock(mutex_);
  make_room(lock, feed, share_of(options_.memory, first));
  const auto reserve = [&](std::uint64_t memory) {
    used_ = used_ - feed.memory + memory;
    feed.memory = memory;
  };
  if (feed.stopping) return nullptr;
  reserve(share_of(options_.memory - used_, first));
  for (bool again = false;; again = true) {
    const std::uint64_t memory = feed.memory;
    lock.unlock();
    try {
      if (memory == 0)
        throw Error(ErrorCode::no_memory, "other streams of batches use all of the GPU memory");
      auto stream = options_.make_stream(first, memory);
      lock.lock();
      reserve(std::min(memory, stream->memory()));
      return stream;
    } catch (const Error& error) {
      lock.lock();
      if (error.code() == ErrorCode::no_memory && !again) {
        make_room(lock, feed, feed.memory);
        if (feed.stopping) return nullptr;
        const std::uint64_t all = options_.memory - used_ + feed.memory;
        if (all > memory) {
          reserve(all);
          continue;
        }
      }
      reserve(0);
      throw;
    }
  }
}

/// Precondition: the lock is held. Returns the feed that has this place, or will; null if none can.
std::shared_ptr<DeviceDelivery::Feed> DeviceDelivery::feed_for(const BatchRequest& request,
                                                               std::int64_t place,
                                                               Fallback& why_not) {
  std::vector<std::shared_ptr<Feed>> others;
  for (auto it = feeds_.rbegin(); it != feeds_.rend(); ++it) {  // the newest first
    const auto& feed = *it;
    if (!feed->is_of(request)) continue;
    if (feed->left) {
      if (feed->idle()) others.push_back(feed);  // its thread may not have run yet
      continue;
    }
    if (feed->dead) {
      // It is retried after its time, or when memory has become free since, or can be freed.
      const bool has_memory = feed->ended_before != ended_ ||
                              std::any_of(feeds_.begin(), feeds_.end(), [&](const auto& other) {
                                return other != feed && other->memory > 0 && other->idle();
                              });
      if (feed->why_dead != Fallback::no_memory || !has_memory) {
        why_not = feed->why_dead;
        return nullptr;
      }
    } else {
      const auto given = feed->given.find(place);
      if ((place >= feed->next && place <= feed->end()) ||
          (given != feed->given.end() && !given->second.expired()))
        return feed;
    }
    others.push_back(feed);
  }
  for (const auto& other : others) {
    if (other->idle()) {  // its reader started a new stream
      end(other);
      std::erase(feeds_, other);
    } else if (options_.one_reader) {
      other->left = true;
    }
  }
  const auto of_rank = std::count_if(feeds_.begin(), feeds_.end(),
                                     [&](const auto& feed) { return feed->is_of(request); });
  if (static_cast<std::size_t>(of_rank) >= kMaxFeedsOfARank) {
    why_not = Fallback::behind;
    return nullptr;
  }
  auto feed = std::make_shared<Feed>();
  feed->view = request.view;
  feed->rank = request.rank;
  feed->world = request.world;
  feed->next = place;
  try {
    feed->maker = std::thread([this, feed, first = request] { begin(feed, first); });
  } catch (const std::exception&) {
    why_not = Fallback::no_memory;
    return nullptr;
  }
  feeds_.push_back(feed);
  return feed;
}

std::size_t DeviceDelivery::slots(const BatchRequest& request) const {
  const std::lock_guard lock(mutex_);
  for (auto it = feeds_.rbegin(); it != feeds_.rend(); ++it)
    if (!(*it)->left && (*it)->is_of(request)) return (*it)->dead ? SIZE_MAX : (*it)->slots;
  return kUsualSlots;
}

std::uint64_t DeviceDelivery::open(BatchRequest request, Order order, Done done) {
  if (order == Order::single)
    return open_on_host(std::move(request), Fallback::by_number, std::move(done));
  Fallback why = Fallback::behind;
  {
    std::unique_lock lock(mutex_);
    const std::int64_t of_rank = request.view->rank_batches(request.rank, request.world);
    const std::int64_t place = request.epoch * of_rank + request.batch;
    // Beyond the stream's last place: padded ranks, and epochs that nobody announced.
    const bool streamed = request.batch < of_rank && request.epoch < request.view->spec().epochs;
    if (!streamed) why = Fallback::past_end;
    if (const auto feed = streamed ? feed_for(request, place, why) : nullptr) {
      feed->used = Clock::now();
      if (const auto given = feed->given.find(place); given != feed->given.end()) {
        if (auto delivered = given->second.lock()) {
          count(*delivered, 1);
          lock.unlock();
          done(std::move(delivered), nullptr);
          return 0;
        }
      }
      if (place == feed->end()) feed->asked.emplace_back();
      wake(feed);
      auto& waiting = feed->asked[static_cast<std::size_t>(place - feed->next)].waiting;
      // A slot must be available without waiting for a release.
      if (feed->held + static_cast<std::size_t>(place - feed->next) < feed->slots) {
        const std::uint64_t id = ++last_opened_;
        waiting.push_back({id, std::move(request), std::move(done)});
        opened_.emplace(id, Opened{false, 0, feed, place});
        return id;
      }
      why = Fallback::slots_held;
    }
  }
  return open_on_host(std::move(request), why, std::move(done));
}

std::uint64_t DeviceDelivery::open_on_host(BatchRequest request, Fallback why, Done done) {
  fallbacks_.count(*request.view, FallbackLog::reason_of(why));
  std::uint64_t id = 0;
  {
    const std::lock_guard lock(mutex_);
    id = ++last_opened_;
    opened_.emplace(id, Opened{true, 0, nullptr, 0});
  }
  const std::uint64_t host =
      host_.open(std::move(request), Order::stream, from_host(id, why, std::move(done)));
  const std::lock_guard lock(mutex_);
  const auto it = opened_.find(id);
  if (it == opened_.end() || host == 0) return 0;
  it->second.host = host;
  return id;
}

/// Wraps `done` for a batch that a GPU should have made and the host delivery makes instead.
Delivery::Done DeviceDelivery::from_host(std::uint64_t id, Fallback why, Done done) {
  return [this, id, why, done = std::move(done)](std::shared_ptr<const DeliveredBatch> delivered,
                                                 std::exception_ptr error) {
    {
      const std::lock_guard lock(mutex_);
      opened_.erase(id);
    }
    if (delivered == nullptr) return done(nullptr, error);
    auto with_reason = std::make_shared<DeliveredBatch>(*delivered);
    with_reason->fallback = why;
    done(std::move(with_reason), nullptr);
  };
}

void DeviceDelivery::cancel(std::uint64_t opened) {
  Done done;
  std::uint64_t host = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto it = opened_.find(opened);
    if (it == opened_.end()) return;
    const Opened entry = it->second;
    if (entry.on_host) {
      host = entry.host;
    } else {
      opened_.erase(it);
      auto& waiting =
          entry.feed->asked[static_cast<std::size_t>(entry.place - entry.feed->next)].waiting;
      const auto mine = std::find_if(waiting.begin(), waiting.end(),
                                     [&](const Waiting& w) { return w.id == opened; });
      done = std::move(mine->done);
      waiting.erase(mine);
    }
  }
  if (host != 0) host_.cancel(host);
  if (done)
    done(nullptr, std::make_exception_ptr(Error(ErrorCode::interrupted, "the reader went away")));
}

/// The thread that makes a feed's stream.
void DeviceDelivery::begin(const std::shared_ptr<Feed>& feed, const BatchRequest& first) {
  std::vector<Waiting> beyond;
  try {
    auto stream = make_stream(*feed, first);
    if (stream == nullptr) return;  // stopping
    stream->on_change([this, served = std::weak_ptr(feed)] {
      if (const auto changed = served.lock()) wake(changed);
    });
    const std::scoped_lock lock(feed->serving, mutex_);
    feed->slots = stream->slots();
    feed->memory_piece = {stream->id() != 0 ? stream->id() : ++last_memory_, stream->size(),
                          stream->kind(), stream->fd(), false};
    feed->stream = std::move(stream);
    if (feed->stopping) feed->stream->stop();
    // These were opened before the number of slots was known: their readers may hold the others
    // and wait.
    for (std::size_t place = feed->slots; place < feed->asked.size(); ++place)
      take_to_host(feed->asked[place].waiting, beyond);
  } catch (...) {
    const Error error = error_of(std::current_exception());
    finish(*feed, FallbackLog::reason_of(error), error.code() == ErrorCode::interrupted);
  }
  for (Waiting& one : beyond) hand_to_host(std::move(one), {.why = Fallback::slots_held});
  wake(feed);
}

/// Has a worker take the feed's batches. May be called with locks held.
void DeviceDelivery::wake(const std::shared_ptr<Feed>& feed) {
  executor_.post(kReaderWaits, [this, feed] { serve(*feed); });
}

void DeviceDelivery::serve(Feed& feed) {
  for (;;) {
    const std::lock_guard serving(feed.serving);
    if (!serve_one(feed)) return;
  }
}

/// Takes the batch that is requested next. False where none is, or it is not complete.
/// Precondition: feed.serving is held.
bool DeviceDelivery::serve_one(Feed& feed) {
  {
    const std::lock_guard lock(mutex_);
    if (feed.stream == nullptr || feed.dead || feed.stopping || feed.asked.empty()) return false;
  }
  std::optional<SlotStream::Slot> slot;
  std::exception_ptr error;
  try {
    slot = feed.stream->try_next();
    if (!slot) return false;
  } catch (...) {
    error = std::current_exception();
  }
  if (error && feed.stream->broken()) {
    const Error why = error_of(error);
    finish(feed, FallbackLog::reason_of(why), why.code() == ErrorCode::interrupted);
    return false;
  }
  std::shared_ptr<DeliveredBatch> delivered = slot ? feed.batch_in(*slot) : nullptr;
  const std::string why_host = slot ? slot->why_host : "";
  std::unique_lock lock(mutex_);
  const std::int64_t place = feed.next++;
  std::vector<Waiting> waiting = std::move(feed.asked.front().waiting);
  feed.asked.pop_front();
  feed.used = Clock::now();
  const bool is_for_host = error && error_of(error).code() == ErrorCode::not_supported;
  for (const Waiting& one : waiting) {
    if (is_for_host)
      opened_[one.id] = {true, 0, nullptr, 0};
    else
      opened_.erase(one.id);
  }
  std::erase_if(feed.given, [](const auto& entry) { return entry.second.expired(); });
  if (delivered != nullptr && !waiting.empty()) {
    ++feed.held;
    delivered->held = std::shared_ptr<const void>(
        nullptr, [this, &feed, release = std::move(slot->release)](const void*) {
          if (!frozen_) release();
          const std::lock_guard again(mutex_);
          --feed.held;
          feed.used = Clock::now();
          if (feed.left && feed.idle()) wake_sweeper();
        });
    feed.given[place] = delivered;
    count(*delivered, waiting.size());
  }
  lock.unlock();
  if (delivered != nullptr && waiting.empty()) slot->release();
  for (std::size_t i = 0; i < waiting.size() && !why_host.empty(); ++i)
    fallbacks_.count(*feed.view, {Fallback::not_decoded, why_host});
  // Keeps no reference: the readers may return the batch before this thread continues.
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    if (is_for_host)
      hand_to_host(std::move(waiting[i]), FallbackLog::reason_of(error_of(error)));
    else
      waiting[i].done(i + 1 < waiting.size() ? delivered : std::move(delivered), error);
  }
  return true;
}

/// The feed delivers nothing more. Waiting requests go to the host, unless their reader has left;
/// when the delivery ends, nobody waits.
void DeviceDelivery::finish(Feed& feed, const Reason& reason, bool has_left) {
  std::unique_lock lock(mutex_);
  if (feed.dead) return;
  feed.dead = true;
  feed.left = feed.left || has_left;
  feed.why_dead = reason.why;
  feed.ended_before = ended_;
  feed.used = Clock::now();
  std::vector<Waiting> left;
  for (Feed::Place& place : feed.asked) take_to_host(place.waiting, left);
  const bool stopping = feed.stopping;
  if (stopping || has_left)
    for (const Waiting& one : left) opened_.erase(one.id);
  lock.unlock();
  for (Waiting& one : left) {
    if (stopping || has_left)
      one.done(nullptr, std::make_exception_ptr(
                            Error(ErrorCode::interrupted,
                                  has_left ? "the reader has left" : "the hand-off is ending")));
    else
      hand_to_host(std::move(one), reason);
  }
  if (has_left && !stopping) wake_sweeper();
}

/// Precondition: the lock is held. Call hand_to_host() for each afterwards, without it.
void DeviceDelivery::take_to_host(std::vector<Waiting>& waiting, std::vector<Waiting>& taken) {
  for (Waiting& one : waiting) {
    opened_[one.id] = {true, 0, nullptr, 0};
    taken.push_back(std::move(one));
  }
  waiting.clear();
}

/// Precondition: the lock is not held; opened_ records already that the request is on the host.
void DeviceDelivery::hand_to_host(Waiting one, const Reason& reason) {
  fallbacks_.count(*one.request.view, reason);
  const std::uint64_t host = host_.open(std::move(one.request), Order::stream,
                                        from_host(one.id, reason.why, std::move(one.done)));
  const std::lock_guard lock(mutex_);
  if (const auto it = opened_.find(one.id); it != opened_.end()) it->second.host = host;
}

DeviceDelivery::Statistics DeviceDelivery::statistics() const {
  Statistics now{.batches = batches_, .bytes = bytes_, .fallbacks = fallbacks_.counts()};
  const std::lock_guard lock(mutex_);
  now.memory = used_;
  now.feeds = feeds_.size();
  return now;
}

}  // namespace batchfs::handoff
