#include "engine/pipeline/engine.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include "engine/base/buffer_pool.h"
#include "engine/base/strings.h"
#include "engine/pipeline/boxes.h"
#include "engine/pipeline/engine_errors.h"

namespace batchfs {

namespace {

/// Ready batches that were opened and are kept for another reader of the same stream: so many, and no more
/// bytes, but always one.
constexpr std::size_t kKeptOpened = 4;
constexpr std::uint64_t kKeptOpenedBytes = 256 << 20;

int default_threads(int asked) {
  return asked > 0 ? asked : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

}  // namespace

Engine::Engine(Options options, Log& log)
    : log_(log),
      store_(std::move(options.store)),
      budget_(options.memory != 0 ? options.memory : default_memory_budget()),
      prefetching_(options.prefetch),
      wait_ns_(options.wait > 0 ? static_cast<std::uint64_t>(options.wait * 1e9) : UINT64_MAX),
      idle_ns_(options.idle > 0 ? static_cast<std::uint64_t>(options.idle * 1e9) : UINT64_MAX),
      when_served_(std::move(options.served)),
      cache_(counters_),
      look_ahead_(cache_, budget_.limit()),
      executor_(default_threads(options.threads)),
      scheduler_(executor_, budget_, cache_, counters_, trace_, log),
      held_(budget_.reserve(std::min(options.held, budget_.limit()))) {
  constexpr std::uint64_t kPooledShare = 16, kMostPooled = 512 << 20;
  keep_pooled(std::min(budget_.limit() / kPooledShare, kMostPooled));
}

Engine::~Engine() { stop(); }

Engine::WaiterId Engine::open(const BatchRequest& request, BatchDone done) {
  const std::uint64_t since = Trace::now();
  std::shared_ptr<Batch> ready;
  WaiterId id = 0;
  bool again = true;  // another file of a batch that is open, or another reader
  {
    std::unique_lock lock(mutex_);
    if (stopping_) {
      lock.unlock();
      done(nullptr, ending_error());
      return 0;
    }
    std::shared_ptr<Entry>& entry = entries_[request.key()];
    const bool is_new = entry == nullptr;
    if (is_new) {
      entry = std::make_shared<Entry>();
      entry->request = request;
    }
    if (!entry->opened) {
      again = false;
      ++now_;
      entry->opened = true;
      opened_.push_back(request.key());
    }
    if (entry->batch != nullptr) {
      ready = entry->batch;
    } else {
      id = ++last_waiter_;
      entry->waiters.push_back({id, request, std::move(done), since});
      waiting_[id] = entry;
      const bool was_prefetch = entry->urgency != kReaderWaits;
      entry->urgency = kReaderWaits;
      entry->started = true;
      if (entry->assembly != nullptr) {
        entry->assembly->cancelled = false;
        if (was_prefetch) {
          entry->assembly->urgency = kReaderWaits;
          entry->assembly->started = true;
          if (entry->submitted) scheduler_.hurry(entry->assembly);
        }
      } else if ((is_new || was_prefetch) && !entry->queued) {
        post_assemble(entry);
      }
    }
    trim_opened();
    last_asked_ = since;
    arm();
  }
  if (!again) ++counters_.batches_opened;
  // Known at once, so that what is begun for it later is ahead of where the reader is then.
  if (prefetching_ && !again) prefetcher_.opened(request, ready == nullptr);
  if (ready != nullptr) {
    if (!again) given(request, ready.get(), since, Trace::End::done);
    done(ready, nullptr);
  }
  if (prefetching_ && !again) {
    post_guess(kReaderWaits, [this, request] {
      std::uint64_t size = 0;
      for (const auto& file : request.format->layout(*request.view, request.global_batch()).files)
        size += memory_files_.memory_of(file.size);
      prefetch(request, size);
    });
  }
  return id;
}

/// Called with mutex_ held.
void Engine::trim_opened() {
  std::uint64_t bytes = 0;
  for (const BatchKey& key : opened_) {
    const auto it = entries_.find(key);
    if (it != entries_.end() && it->second->batch != nullptr) bytes += it->second->batch->bytes();
  }
  while (opened_.size() > kKeptOpened || (opened_.size() > 1 && bytes > kKeptOpenedBytes)) {
    const std::uint64_t before = drop_opened();
    if (before == 0) return;
    bytes -= std::min(bytes, before);
  }
}

/// Called with mutex_ held: forgets the oldest opened batch that is ready. Its memory goes with its last
/// holder.
std::uint64_t Engine::drop_opened() {
  for (auto it = opened_.begin(); it != opened_.end(); ++it) {
    const auto entry = entries_.find(*it);
    if (entry != entries_.end() && entry->second->batch == nullptr) continue;
    std::uint64_t bytes = 1;  // a key whose batch is gone counts as something
    if (entry != entries_.end()) {
      bytes = entry->second->batch->bytes();
      entries_.erase(entry);
    }
    opened_.erase(it);
    return bytes;
  }
  return 0;
}

void Engine::post_assemble(const std::shared_ptr<Entry>& entry) {
  // Before any decoding but what a reader waits for: it takes little time, and the sooner a batch has joined the
  // chunks that it needs, the more it gets from what others bring.
  // Weak: a reader that overtakes a prefetch leaves a ticket in the queue, which must not hold the batch.
  executor_.post(entry->urgency == kReaderWaits ? kReaderWaits : kPrefetch, [this, ticket = std::weak_ptr(entry)] {
    if (const auto wanted = ticket.lock()) assemble(wanted);
  });
}

/// Until when cached chunks are worth more than this batch, made ahead.
std::uint64_t Engine::keep_until(const Entry& entry) {
  const std::lock_guard lock(mutex_);  // a reader may come and change it
  return static_cast<std::uint64_t>(entry.urgency);
}

/// Empty when there is none: readers hold it, or work that will end.
Budget::Reservation Engine::make_room(std::uint64_t bytes, bool waited, std::uint64_t keep_until) {
  for (;;) {
    budget_.set_outside(memory_files_.mapped_by_others() + memory_files_.spare_bytes());
    if (auto reservation = budget_.try_reserve(bytes)) return reservation;
    if (memory_files_.drop_spares() > 0) continue;
    {
      const std::lock_guard lock(mutex_);
      if (drop_opened() > 0) continue;
    }
    if (cache_.evict_one(keep_until)) continue;
    if (!waited) return {};
    // Batches that nobody has opened: the least urgent one first.
    const std::lock_guard lock(mutex_);
    auto victim = entries_.end();
    for (auto it = entries_.begin(); it != entries_.end(); ++it) {
      const Entry& other = *it->second;
      const bool idle = other.batch != nullptr || (other.submitted && !other.started);
      if (idle && !other.opened && (victim == entries_.end() || other.urgency > victim->second->urgency)) victim = it;
    }
    if (victim == entries_.end()) return {};
    const bool at_once = victim->second->batch != nullptr;
    drop(victim->second);
    if (!at_once) return {};  // its memory comes back soon
  }
}

/// Called with mutex_ held: forgets a batch that nobody waits for.
void Engine::drop(std::shared_ptr<Entry> entry) {
  entries_.erase(entry->request.key());
  if (entry->assembly == nullptr) return;
  entry->assembly->cancelled = true;
  if (entry->submitted) scheduler_.hurry(entry->assembly);
}

/// There is no memory for a prefetch now.
void Engine::give_up(const std::shared_ptr<Entry>& entry) {
  {
    const std::lock_guard lock(mutex_);
    entry->assembly = nullptr;
    if (!entry->waiters.empty()) {  // a reader came meanwhile
      post_assemble(entry);
      return;
    }
    const auto it = entries_.find(entry->request.key());
    if (it != entries_.end() && it->second == entry) entries_.erase(it);
    if (!entry->started) return;
  }
  prefetcher_.pressed(entry->request);
}

void Engine::assemble(const std::shared_ptr<Entry>& entry) {
  const BatchRequest& request = entry->request;
  bool waited, stopping, others_wait;
  Budget::Reservation granted;
  {
    const std::lock_guard lock(mutex_);
    const auto it = entries_.find(request.key());
    // Dropped, begun by an earlier ticket, or done.
    if (it == entries_.end() || it->second != entry || entry->assembly || entry->batch || entry->queued) return;
    waited = entry->urgency == kReaderWaits;
    stopping = stopping_;
    others_wait = !short_.empty();
    granted = std::move(entry->granted);
    if (!stopping) {
      entry->assembly = std::make_shared<Assembly>();
      entry->assembly->urgency = entry->urgency;
      entry->assembly->started = entry->started;
      entry->assembly->of = traced(request);
      entry->began = Trace::now();
    }
  }
  if (stopping) return complete(entry, nullptr, ending_error());
  const std::shared_ptr<Assembly> assembly = entry->assembly;
  try {
    const View& view = *request.view;
    const std::int64_t global = request.global_batch();
    const BatchLayout layout = request.format->layout(view, global);
    auto batch = std::make_shared<Batch>();
    std::uint64_t bytes = 0;
    for (const BatchLayout::File& file : layout.files) bytes += memory_files_.memory_of(file.size);
    if (bytes > budget_.limit()) throw larger_than_budget("a batch", bytes, budget_.limit());
    if (granted) batch->reservation = std::move(granted);
    else if (!others_wait) batch->reservation = make_room(bytes, waited, waited ? 0 : keep_until(*entry));
    if (!batch->reservation) {
      if (!waited) return give_up(entry);
      return queue_for_memory({bytes, entry, 0, [this, entry](Budget::Reservation memory, std::exception_ptr error) {
                                 if (error) return complete(entry, nullptr, error);
                                 {
                                   const std::lock_guard lock(mutex_);
                                   entry->granted = std::move(memory);
                                 }
                                 post_assemble(entry);
                               }});
    }
    for (const BatchLayout::File& file : layout.files) {
      MemoryFile& memory = batch->files.emplace_back(request.format->reusable()
                                                         ? memory_files_.create_reusable("batchfs", file.size)
                                                         : memory_files_.create("batchfs", file.size));
      for (const BatchLayout::Literal& literal : file.literals)
        std::memcpy(memory.data() + literal.offset, literal.bytes.data(), literal.bytes.size());
    }
    const BatchPlan plan = view.plan(request.epoch, global);
    for (const Padding& padding : plan.paddings) {
      const TensorSpec& tensor = view.tensors()[padding.tensor];
      const BatchLayout::Place& place = layout.tensors[padding.tensor];
      fill_strided(padding.shape, tensor.type.itemsize, tensor.pad.data(),
                   batch->files[place.file].data() + place.offset + padding.offset, padding.strides);
    }
    for (const ChunkUse& use : plan.chunks) {
      const Variable& variable = *view.variables()[use.variable];
      assembly->uses.push_back({variable.array, use.chunk,
                                static_cast<std::uint32_t>(assembly->parts.size()), use.part_count});
      for (std::uint32_t i = use.first_part; i < use.first_part + use.part_count; ++i) {
        const Part& part = plan.parts[i];
        const BatchLayout::Place& place = layout.tensors[part.tensor];
        assembly->parts.push_back({part.source,
                                   batch->files[place.file].data() + place.offset + part.offset,
                                   part.strides, &view.converter(part.tensor, use.variable)});
      }
    }
    if (assembly->started && !reserve_ahead(*entry, *assembly, waited, false)) return give_up(entry);
    batch->view = request.view;
    assembly->memory = batch;
    assembly->shares_memory = true;
    assembly->finished = [this, entry, batch, finish = layout.finish, epoch = request.epoch](std::exception_ptr error) {
      if (!error) {
        try {
          if (finish) finish(batch->files, epoch);
          for (MemoryFile& file : batch->files) file.seal();
        } catch (...) {
          error = std::current_exception();
        }
      }
      complete(entry, batch, error);
    };
  } catch (...) {
    complete(entry, nullptr, std::current_exception());
    return;
  }
  if (!waited) ++counters_.batches_prefetched;
  scheduler_.submit(assembly);
  // From here on the chunks know who waits for them. A reader that waits now keeps what it needs in the cache.
  if (!waited) look_ahead_.forget(request.key());
  const std::lock_guard lock(mutex_);
  if (entry->assembly != assembly) return;
  entry->submitted = true;
  // A reader may have come while the list was being made, or the batch become due, or dropped.
  const bool hurried = !waited && entry->urgency == kReaderWaits;
  const bool due = entry->started && !assembly->started;
  if (due) assembly->started = true;
  if (hurried || due || assembly->cancelled) scheduler_.hurry(assembly);
}

void Engine::complete(const std::shared_ptr<Entry>& entry, std::shared_ptr<Batch> batch,
                      std::exception_ptr error) {
  const bool interrupted = error && error_of(error).code() == ErrorCode::interrupted;
  std::vector<Waiter> waiters;
  {
    const std::lock_guard lock(mutex_);
    entry->submitted = false;
    if (interrupted && !entry->waiters.empty() && !stopping_) {
      // Its last reader had gone and its chunks were being dropped when another came: once more.
      entry->assembly = nullptr;
      post_assemble(entry);
      return;
    }
    waiters = std::move(entry->waiters);
    entry->waiters.clear();
    for (const Waiter& waiter : waiters) waiting_.erase(waiter.id);
    entry->assembly = nullptr;
    if (error) {
      const auto it = entries_.find(entry->request.key());  // the next open tries again
      if (it != entries_.end() && it->second == entry) entries_.erase(it);
    } else {
      entry->batch = batch;
    }
  }
  look_ahead_.forget(entry->request.key());
  const Trace::End end = !error ? Trace::End::done : interrupted ? Trace::End::left : Trace::End::failed;
  if (entry->began != 0)
    trace_.add({.kind = Trace::Kind::assemble,
                .end = end,
                .begin = entry->began,
                .bytes = error ? 0 : batch->bytes(),
                .of = traced(entry->request)});
  if (error && !interrupted) {
    log_.error(fmt::format("view {}: epoch {} batch {} failed: {}", entry->request.view->name(),
                           entry->request.epoch, entry->request.global_batch(), error_of(error).what()));
  } else if (!error) {
    ++counters_.batches_assembled;
  }
  const std::uint64_t now = Trace::now();
  for (Waiter& waiter : waiters) {
    ++counters_.reader_waits;
    counters_.reader_wait_nanoseconds += now - waiter.since;
    given(waiter.request, error ? nullptr : batch.get(), waiter.since, end);
    waiter.done(error ? nullptr : batch, error);
  }
}

Trace::Batch Engine::traced(const BatchRequest& request) {
  return {.view = trace_.name(request.view->name()),
          .rank = static_cast<std::int32_t>(request.rank),
          .world = static_cast<std::int32_t>(request.world),
          .epoch = request.epoch,
          .batch = request.global_batch()};
}

void Engine::given(const BatchRequest& request, const Batch* batch, std::uint64_t since, Trace::End end) {
  const std::uint64_t bytes = batch == nullptr ? 0 : batch->bytes(), now = Trace::now();
  if (end != Trace::End::left) readers_.got(request, bytes, now - since, end == Trace::End::failed, now);
  trace_.add({.kind = Trace::Kind::wait, .end = end, .begin = since, .bytes = bytes, .of = traced(request)});
  if (batch != nullptr) note_served();
}

void Engine::note_served() {
  if (!served_.exchange(true, std::memory_order_relaxed) && when_served_) when_served_();
}

}  // namespace batchfs
