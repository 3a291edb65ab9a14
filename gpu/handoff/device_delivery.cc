#include "gpu/handoff/device_delivery.h"

#include <algorithm>
#include <cstring>
#include <deque>

#include "engine/base/strings.h"

namespace batchfs::handoff {

namespace {

using Clock = std::chrono::steady_clock;

/// Slots of a stream that is not made yet: as many as a reader asks for at first.
constexpr std::size_t kSlotsExpected = 3;

}  // namespace

struct DeviceDelivery::Feed {
  std::shared_ptr<const View> view;
  std::int64_t rank = 0, world = 1;

  // Guarded by the delivery's mutex.
  struct Place {
    std::vector<Waiting> waiting;  // none: it is passed over
  };
  std::deque<Place> asked;       // of the stream, not yet taken
  std::int64_t next = 0;         // place of asked.front()
  std::map<std::int64_t, std::weak_ptr<const Parcel>> given;  // and perhaps held
  std::size_t held = 0;          // slots
  std::size_t slots = kSlotsExpected;
  std::uint64_t memory = 0;      // of the delivery's, reserved
  bool dead = false;             // gives nothing more
  Clock::time_point used = Clock::now();
  bool stopping = false;

  std::unique_ptr<SlotStream> stream;  // the thread's
  std::thread thread;

  std::int64_t end() const { return next + static_cast<std::int64_t>(asked.size()); }
  bool idle() const { return held == 0 && std::all_of(asked.begin(), asked.end(), [](const Place& p) { return p.waiting.empty(); }); }
};

DeviceDelivery::DeviceDelivery(Options options, Delivery& host, Log& log)
    : options_(std::move(options)), host_(host), log_(log), sweeper_([this] { sweep(); }) {}

DeviceDelivery::~DeviceDelivery() {
  {
    const std::lock_guard lock(mutex_);
    end_idle(true);
    stopping_ = true;
    changed_.notify_all();
  }
  sweeper_.join();
}

bool DeviceDelivery::serves(const HelloMessage& hello) const {
  return (hello.kinds & bit(MemoryKind::device_fd)) != 0 && (hello.kinds & bit(MemoryKind::host)) != 0 &&
         std::memcmp(hello.gpu_uuid, options_.uuid.data(), options_.uuid.size()) == 0;
}

/// Called with the lock. Feeds that nobody reads are given to the sweeper: after their time, or `all`.
void DeviceDelivery::end_idle(bool all) {
  const auto now = Clock::now();
  std::erase_if(feeds_, [&](const std::shared_ptr<Feed>& feed) {
    if (!all && !(feed->idle() && now - feed->used > options_.idle_time)) return false;
    end(feed);
    return true;
  });
  changed_.notify_all();
}

/// Called with the lock. The caller takes it out of feeds_.
void DeviceDelivery::end(const std::shared_ptr<Feed>& feed) {
  feed->stopping = true;
  if (feed->stream != nullptr) feed->stream->stop();
  ending_.push_back(feed);
}

/// Ends feeds where nobody has to wait for it.
void DeviceDelivery::sweep() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait_for(lock, options_.idle_time / 4, [this] { return stopping_ || !ending_.empty(); });
    end_idle(false);
    while (!ending_.empty()) {
      const std::shared_ptr<Feed> feed = std::move(ending_.back());
      ending_.pop_back();
      lock.unlock();
      if (feed->thread.joinable()) feed->thread.join();
      lock.lock();
      used_ -= std::exchange(feed->memory, 0);
    }
    if (stopping_) return;
  }
}

/// Called with the lock. The feed that has this place, or will; null where none can.
std::shared_ptr<DeviceDelivery::Feed> DeviceDelivery::feed_for(const BatchRequest& request, std::int64_t place,
                                                               Fallback& why_not) {
  why_not = Fallback::behind;
  std::shared_ptr<Feed> other;
  for (const auto& feed : feeds_) {
    if (feed->view != request.view || feed->rank != request.rank || feed->world != request.world) continue;
    if (feed->dead) {
      why_not = Fallback::failed;
      return nullptr;
    }
    const auto given = feed->given.find(place);
    if ((place >= feed->next && place <= feed->end()) || (given != feed->given.end() && !given->second.expired())) return feed;
    other = feed;
  }
  if (other != nullptr) {
    if (!other->idle()) return nullptr;  // somebody reads elsewhere
    end(other);                          // its reader began anew
    std::erase(feeds_, other);
    changed_.notify_all();
  }
  // The first takes half, the next half of what is left.
  std::uint64_t memory = (options_.memory - used_) / 2;
  if (other != nullptr) memory = std::max(memory, std::min(other->memory, options_.memory - used_));
  if (memory == 0) {
    why_not = Fallback::no_memory;
    return nullptr;
  }
  auto feed = std::make_shared<Feed>();
  feed->view = request.view;
  feed->rank = request.rank;
  feed->world = request.world;
  feed->next = place;
  feed->memory = memory;
  used_ += memory;
  feeds_.push_back(feed);
  feed->thread = std::thread([this, &served = *feed, first = request, memory] { serve(served, first, memory); });
  return feed;
}

std::uint64_t DeviceDelivery::open(BatchRequest request, Order order, Done done) {
  if (order == Order::single) return open_on_host(std::move(request), Fallback::by_number, std::move(done));
  Fallback why = Fallback::behind;
  {
    std::unique_lock lock(mutex_);
    const std::int64_t of_rank = request.view->rank_batches(request.rank, request.world);
    const std::int64_t place = request.epoch * of_rank + request.batch;
    // Behind the last that the stream has: ranks that are padded, epochs that nobody announced.
    const bool streamed = request.batch < of_rank && request.epoch < request.view->epochs();
    if (const auto feed = streamed ? feed_for(request, place, why) : nullptr) {
      feed->used = Clock::now();
      if (const auto given = feed->given.find(place); given != feed->given.end()) {
        if (auto parcel = given->second.lock()) {
          ++batches_;
          lock.unlock();
          done(std::move(parcel), nullptr);
          return 0;
        }
      }
      if (place == feed->end()) feed->asked.emplace_back();
      changed_.notify_all();
      auto& waiting = feed->asked[static_cast<std::size_t>(place - feed->next)].waiting;
      // It must get a slot without anybody's giving one back.
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
  ++fallbacks_[static_cast<std::size_t>(why)];
  std::uint64_t id = 0;
  {
    const std::lock_guard lock(mutex_);
    id = ++last_opened_;
    opened_.emplace(id, Opened{true, 0, nullptr, 0});
  }
  const std::uint64_t host = host_.open(std::move(request), Order::stream, [this, id, done = std::move(done)](
                                                                  std::shared_ptr<const Parcel> parcel, std::exception_ptr error) {
    {
      const std::lock_guard lock(mutex_);
      opened_.erase(id);
    }
    done(std::move(parcel), error);
  });
  const std::lock_guard lock(mutex_);
  const auto it = opened_.find(id);
  if (it == opened_.end() || host == 0) return 0;
  it->second.host = host;
  return id;
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
      auto& waiting = entry.feed->asked[static_cast<std::size_t>(entry.place - entry.feed->next)].waiting;
      const auto mine = std::find_if(waiting.begin(), waiting.end(), [&](const Waiting& w) { return w.id == opened; });
      done = std::move(mine->done);
      waiting.erase(mine);
    }
  }
  if (host != 0) host_.cancel(host);
  if (done) done(nullptr, std::make_exception_ptr(Error(ErrorCode::interrupted, "the reader went away")));
}

/// A feed's thread: takes batches as they are asked for.
void DeviceDelivery::serve(Feed& feed, const BatchRequest& first, std::uint64_t memory) {
  Parcel::Memory piece;
  Fallback why = Fallback::failed;
  try {
    auto stream = options_.make_stream(first, memory);
    const std::lock_guard lock(mutex_);
    feed.stream = std::move(stream);
    feed.slots = feed.stream->slots();
    piece = {feed.stream->id() != 0 ? feed.stream->id() : ++last_memory_, feed.stream->size(), feed.stream->kind(),
             feed.stream->fd(), false};
    const std::uint64_t taken = std::min(memory, feed.stream->memory());
    used_ -= feed.memory - taken;
    feed.memory = taken;
  } catch (const std::exception& error) {
    const auto* known = dynamic_cast<const Error*>(&error);
    if (known != nullptr && known->code() == ErrorCode::no_memory) why = Fallback::no_memory;
    log_.warning("batches of the view '" + feed.view->name() + "' are not made in GPU memory: " + error.what());
  }
  std::unique_lock lock(mutex_);
  while (feed.stream != nullptr && !feed.dead) {
    changed_.wait(lock, [&] { return feed.stopping || !feed.asked.empty(); });
    if (feed.stopping) break;
    lock.unlock();
    std::shared_ptr<Parcel> parcel;
    std::exception_ptr error;
    SlotStream::Slot slot;
    try {
      slot = feed.stream->next();
    } catch (...) {
      error = std::current_exception();
    }
    if (error && feed.stream->broken()) {
      const Error cause = error_of(error);
      if (cause.code() != ErrorCode::interrupted)
        log_.error(std::string("the GPU stage has failed, batches come from the host: ") + cause.what());
      lock.lock();
      feed.dead = true;
      break;
    }
    if (!error) {
      parcel = std::make_shared<Parcel>();
      parcel->memories.push_back(piece);
      for (const SlotStream::Tensor& tensor : slot.tensors) parcel->tensors.push_back({0, tensor.offset, tensor.bytes});
    }
    lock.lock();
    const std::int64_t place = feed.next++;
    std::vector<Waiting> waiting = std::move(feed.asked.front().waiting);
    feed.asked.pop_front();
    feed.used = Clock::now();
    const bool from_host = error && error_of(error).code() == ErrorCode::not_supported;
    for (const Waiting& one : waiting) {
      if (from_host) opened_[one.id] = {true, 0, nullptr, 0};
      else opened_.erase(one.id);
    }
    std::erase_if(feed.given, [](const auto& entry) { return entry.second.expired(); });
    if (parcel != nullptr && !waiting.empty()) {
      ++feed.held;
      parcel->held = std::shared_ptr<const void>(nullptr, [this, &feed, release = std::move(slot.release)](const void*) {
        if (!frozen_) release();
        const std::lock_guard again(mutex_);
        --feed.held;
        feed.used = Clock::now();
      });
      feed.given[place] = parcel;
      batches_ += waiting.size();
      for (const auto& tensor : parcel->tensors) bytes_ += tensor.bytes * waiting.size();
    }
    lock.unlock();
    if (parcel != nullptr && waiting.empty()) slot.release();
    // Nothing of it is kept here: its readers may give it back before this thread goes on.
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      if (from_host) hand_to_host(std::move(waiting[i]), Fallback::failed);
      else waiting[i].done(i + 1 < waiting.size() ? parcel : std::move(parcel), error);
    }
    waiting.clear();
    parcel = nullptr;
    lock.lock();
  }
  // What still waits comes from the host; when the delivery ends, nobody waits.
  feed.dead = true;
  feed.used = Clock::now();
  std::vector<Waiting> left;
  for (Feed::Place& place : feed.asked) {
    for (Waiting& one : place.waiting) {
      opened_[one.id] = {true, 0, nullptr, 0};
      left.push_back(std::move(one));
    }
    place.waiting.clear();
  }
  const bool stopping = feed.stopping;
  if (stopping)
    for (const Waiting& one : left) opened_.erase(one.id);
  lock.unlock();
  for (Waiting& one : left) {
    if (stopping) one.done(nullptr, std::make_exception_ptr(Error(ErrorCode::interrupted, "the hand-off is ending")));
    else hand_to_host(std::move(one), why);
  }
  left.clear();
  if (!stopping) return;
  lock.lock();
  const std::unique_ptr<SlotStream> stream = std::move(feed.stream);
  lock.unlock();
}

/// Called without the lock. opened_ says already that it is on the host.
void DeviceDelivery::hand_to_host(Waiting one, Fallback why) {
  ++fallbacks_[static_cast<std::size_t>(why)];
  const std::uint64_t host = host_.open(std::move(one.request), Order::stream,
                                        [this, id = one.id, done = std::move(one.done)](std::shared_ptr<const Parcel> parcel, std::exception_ptr error) {
                                          {
                                            const std::lock_guard again(mutex_);
                                            opened_.erase(id);
                                          }
                                          done(std::move(parcel), error);
                                        });
  const std::lock_guard lock(mutex_);
  if (const auto it = opened_.find(one.id); it != opened_.end()) it->second.host = host;
}

DeviceDelivery::Statistics DeviceDelivery::statistics() const {
  Statistics now{.batches = batches_, .bytes = bytes_};
  for (std::size_t i = 0; i < now.fallbacks.size(); ++i) now.fallbacks[i] = fallbacks_[i];
  const std::lock_guard lock(mutex_);
  now.memory = used_;
  now.feeds = feeds_.size();
  return now;
}

}  // namespace batchfs::handoff
