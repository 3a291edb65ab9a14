// The engine's waits and how they end: by what was waited for, by the one who waits, by the clock, or with the engine.
//
// One who waits for memory waits in a queue, so that a large batch is not overtaken by small ones for ever. The queue
// is looked at by the clock, since memory comes back in ways that tell nobody: a reader closes a file, or unmaps it.

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "engine/pipeline/boxes.h"
#include "engine/pipeline/engine.h"
#include "engine/pipeline/engine_errors.h"

namespace batchfs {

namespace {

constexpr std::uint64_t kMillisecond = 1'000'000, kSecond = 1'000'000'000;
/// How often the queue for memory is looked at.
constexpr std::uint64_t kQueueTick = 5 * kMillisecond;
/// Who waits for memory has no hope left when none was given back for so long.
constexpr std::uint64_t kMemoryPatience = 30 * kSecond;

}  // namespace

void Engine::stop() { stop_within(0); }

bool Engine::stop_within(double seconds) {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  clock_.stop();
  scheduler_.interrupt();  // everything under way ends as interrupted, and so do its waiters
  // At once: what is being read may take long to notice.
  std::deque<Short> queue;
  std::vector<WaiterId> waiters;
  {
    const std::lock_guard lock(mutex_);
    queue = std::move(short_);
    short_.clear();
    for (const Short& one : queue)
      if (one.entry != nullptr) one.entry->queued = false;
    for (const auto& [id, entry] : waiting_) waiters.push_back(id);
    for (const auto& [id, read] : reads_) waiters.push_back(id);
  }
  for (Short& one : queue) one.granted({}, ending_error());
  for (const WaiterId id : waiters) leave(id, ending_error());
  if (store_ != nullptr) store_->stop();
  scheduler_.wait();
  return executor_.stop(seconds);
}

void Engine::cancel(WaiterId id) {
  leave(id, std::make_exception_ptr(Error(ErrorCode::interrupted, "the reader went away")));
}

/// Ends a wait. What was waited for goes on only if someone else waits for it or it is due soon anyway.
void Engine::leave(WaiterId id, std::exception_ptr why) {
  Waiter waiter{};
  ReadDone read_done;
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = waiting_.find(id); it != waiting_.end()) {
      const std::shared_ptr<Entry> entry = it->second;
      waiting_.erase(it);
      const auto found = std::find_if(entry->waiters.begin(), entry->waiters.end(),
                                      [id](const Waiter& w) { return w.id == id; });
      if (found == entry->waiters.end()) return;
      waiter = std::move(*found);
      entry->waiters.erase(found);
      if (entry->waiters.empty() && entry->assembly != nullptr && !prefetcher_.wanted(entry->request))
        entry->assembly->cancelled = true;
    } else if (const auto read = reads_.find(id); read != reads_.end()) {
      if (read->second.assembly != nullptr) read->second.assembly->cancelled = true;
      read_done = std::move(read->second.done);
      reads_.erase(read);
    } else {
      return;
    }
  }
  if (read_done) return read_done(why);
  const bool went_away = error_of(why).code() == ErrorCode::interrupted;
  given(waiter.request, nullptr, waiter.since, went_away ? Trace::End::left : Trace::End::failed);
  waiter.done(nullptr, why);
}

/// 0 when the engine is ending: `done` was called.
Engine::WaiterId Engine::begin_read(ReadDone done, std::shared_ptr<Assembly> assembly) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopping_) {
      const WaiterId id = ++last_waiter_;
      last_asked_ = Trace::now();
      reads_[id] = {std::move(done), last_asked_, std::move(assembly)};
      arm();
      return id;
    }
  }
  done(ending_error());
  return 0;
}

/// Is it still waited for? No more from here on.
bool Engine::end_read(WaiterId read) {
  const std::lock_guard lock(mutex_);
  return reads_.erase(read) > 0;
}

Engine::WaiterId Engine::open_box(std::shared_ptr<const Array> array, Box box, std::string header, BatchDone done) {
  const std::int64_t itemsize = array->type().itemsize;
  const std::uint64_t size = header.size() + static_cast<std::uint64_t>(box.elements() * itemsize);
  const std::uint64_t bytes = memory_files_.memory_of(size);
  if (bytes > budget_.limit()) {
    done(nullptr, std::make_exception_ptr(larger_than_budget("a chunk", bytes, budget_.limit())));
    return 0;
  }
  const auto shared = std::make_shared<BatchDone>(std::move(done));
  const WaiterId id = begin_read([shared](std::exception_ptr error) { (*shared)(nullptr, error); }, nullptr);
  if (id == 0) return 0;
  auto begin = [this, id, shared, size, itemsize, array, box = std::move(box), header = std::move(header)](
                   Budget::Reservation memory, std::exception_ptr error) {
    if (error) return leave(id, error);
    try {
      auto batch = std::make_shared<Batch>();
      batch->reservation = std::move(memory);
      MemoryFile& file = batch->files.emplace_back(memory_files_.create("batchfs-chunk", size));
      std::memcpy(file.data(), header.data(), header.size());
      auto assembly = std::make_shared<Assembly>();
      add_box(*assembly, array, box, nullptr, file.data() + header.size(), c_strides(box.shape, itemsize));
      assembly->memory = batch;
      assembly->finished = [this, id, shared, batch](std::exception_ptr failure) {
        if (!failure) {
          try {
            batch->files[0].seal();
          } catch (...) {
            failure = std::current_exception();
          }
        }
        if (!end_read(id)) return;
        if (!failure) note_served();
        (*shared)(failure ? nullptr : batch, failure);
      };
      {
        const std::lock_guard lock(mutex_);
        const auto read = reads_.find(id);
        if (read == reads_.end()) return;
        read->second.assembly = assembly;
      }
      scheduler_.submit(assembly);
    } catch (...) {
      leave(id, std::current_exception());
    }
  };
  bool others_wait;
  {
    const std::lock_guard lock(mutex_);
    others_wait = !short_.empty();
  }
  Budget::Reservation memory;
  if (!others_wait) memory = make_room(bytes, true, 0);
  if (memory) begin(std::move(memory), nullptr);
  else queue_for_memory({bytes, nullptr, id, std::move(begin)});
  return id;
}

void Engine::queue_for_memory(Short whom) {
  {
    const std::lock_guard lock(mutex_);
    if (whom.entry != nullptr) whom.entry->assembly = nullptr;
    if (!stopping_) {
      if (whom.entry != nullptr) whom.entry->queued = true;
      if (short_.empty()) {
        short_used_ = UINT64_MAX;
        short_since_ = Trace::now();
      }
      short_.push_back(std::move(whom));
      arm();
      return;
    }
  }
  whom.granted({}, ending_error());
}

Error Engine::no_room(std::uint64_t bytes) const {
  const std::uint64_t outside = budget_.outside();
  return Error(ErrorCode::no_memory,
               fmt::format("there is no room for {}: {} of the memory budget of {} is in use{}; close or unmap batches "
                           "that are done with, or give more with --memory",
                           format_size(bytes), format_size(budget_.used()), format_size(budget_.limit()),
                           outside > 0 ? " and " + format_size(outside) + " in files that were closed but are still mapped" : ""));
}

void Engine::serve_queue() {
  for (;;) {
    std::uint64_t bytes;
    std::optional<Short> left;  // nobody waits for it any more
    {
      const std::lock_guard lock(mutex_);
      if (short_.empty()) return;
      Short& first = short_.front();
      bytes = first.bytes;
      if (first.entry != nullptr ? first.entry->waiters.empty() : !reads_.contains(first.read)) {
        left = std::move(first);
        short_.pop_front();
        if (left->entry != nullptr) {
          left->entry->queued = false;
          drop(left->entry);
        }
      }
    }
    if (left) continue;
    Budget::Reservation memory = make_room(bytes, true, 0);
    const std::uint64_t used = budget_.used() + budget_.outside(), now = Trace::now();
    Short served{};
    {
      const std::lock_guard lock(mutex_);
      if (short_.empty()) return;  // the engine is ending
      // What is being made comes to an end by itself, be it that its store does not answer: only readers may hold memory for ever.
      if (memory || used < short_used_ || is_at_work()) short_since_ = now;
      short_used_ = used;
      if (!memory && now - short_since_ < std::min(kMemoryPatience, wait_ns_ / 2)) return;
      // Only this thread takes from the queue, unless the engine ends.
      served = std::move(short_.front());
      short_.pop_front();
      if (served.entry != nullptr) served.entry->queued = false;
    }
    if (memory) served.granted(std::move(memory), nullptr);
    else served.granted({}, std::make_exception_ptr(no_room(bytes)));
  }
}

/// Called with mutex_ held: is anything under way that holds memory, and will give it back or hand it to a reader?
bool Engine::is_at_work() const {
  return std::any_of(entries_.begin(), entries_.end(), [](const auto& entry) { return entry.second->submitted; }) ||
         std::any_of(reads_.begin(), reads_.end(), [](const auto& read) { return read.second.assembly != nullptr; });
}

/// Of what is kept for readers, all, when none has come for long.
void Engine::give_back() {
  {
    const std::lock_guard lock(mutex_);
    if (last_asked_ == 0 || !waiting_.empty() || !reads_.empty() || Trace::now() - last_asked_ < idle_ns_) return;
    last_asked_ = 0;
    std::vector<std::shared_ptr<Entry>> kept;
    for (const auto& [key, entry] : entries_) kept.push_back(entry);
    for (const auto& entry : kept) drop(entry);
    opened_.clear();
  }
  look_ahead_.forget_all();
  while (cache_.evict_one()) {}
}

/// Called with mutex_ held: tick() will come while somebody waits, or something is kept.
void Engine::arm() {
  std::uint64_t pause;
  if (!short_.empty()) pause = kQueueTick;
  else if (wait_ns_ != UINT64_MAX && !(waiting_.empty() && reads_.empty()))
    pause = std::clamp(wait_ns_ / 8, 10 * kMillisecond, kSecond);
  else if (idle_ns_ != UINT64_MAX && last_asked_ != 0) pause = idle_ns_ / 2;
  else return;
  const std::uint64_t at = Trace::now() + pause;
  if (tick_at_ <= at) return;
  tick_at_ = at;
  clock_.post(static_cast<std::int64_t>(at), [this] { tick(); });
}

void Engine::tick() {
  {
    const std::lock_guard lock(mutex_);
    tick_at_ = UINT64_MAX;
  }
  serve_queue();
  give_back();
  std::vector<WaiterId> overdue;
  {
    const std::lock_guard lock(mutex_);
    const std::uint64_t now = Trace::now();
    const auto too_long = [&](std::uint64_t since) { return now - std::min(now, since) >= wait_ns_; };
    for (const auto& [id, entry] : waiting_)
      for (const Waiter& waiter : entry->waiters)
        if (waiter.id == id && too_long(waiter.since)) overdue.push_back(id);
    for (const auto& [id, read] : reads_)
      if (too_long(read.since)) overdue.push_back(id);
  }
  for (const WaiterId id : overdue) {
    ++counters_.errors;
    const std::string why =
        fmt::format("not ready after {:.4g} seconds (--wait)", static_cast<double>(wait_ns_) * 1e-9);
    log_.error("a reader timed out: " + why);
    leave(id, std::make_exception_ptr(Error(ErrorCode::timed_out, why)));
  }
  const std::lock_guard lock(mutex_);
  arm();
}

Engine::Waiting Engine::waiting() const {
  const std::lock_guard lock(mutex_);
  Waiting waiting{waiting_.size() + reads_.size(), 0};
  for (const Short& one : short_) waiting.for_memory += one.entry != nullptr ? one.entry->waiters.size() : 1;
  return waiting;
}

}  // namespace batchfs
