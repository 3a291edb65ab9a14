#include "engine/pipeline/chunk_scheduler.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/pipeline/chunk_costs.h"

namespace batchfs {

ChunkScheduler::ChunkScheduler(Executor& executor, Budget& budget, ChunkCache& cache,
                               Counters& counters, Trace& trace, Log& log)
    : executor_(executor), budget_(budget), cache_(cache), counters_(counters), trace_(trace), log_(log), decoder_(budget, cache, counters, trace) {}

std::uint64_t ChunkScheduler::memory_ahead(const Assembly& assembly, bool submitted) const {
  std::uint64_t sum = 0;
  for (const Assembly::Use& use : assembly.uses) {
    const Array& array = *use.array;
    if (array.store().is_local()) continue;
    const ChunkKey key{use.array.get(), use.chunk};
    {
      const std::lock_guard lock(mutex_);
      const auto it = tasks_.find(key);
      if (it == tasks_.end() ? submitted : it->second->running) continue;  // served, or under way
    }
    const Box need = needed(assembly, use);
    if (cache_.holds(key, need)) continue;
    sum += stored_bytes(array, need, fetches_pieces(array, use.chunk, need, 1 + cache_.uses(key), nullptr));
  }
  return sum;
}

Box ChunkScheduler::box_to_decode(const Task& task, const Box& need, const std::vector<ChunkConsumer>& consumers) const {
  std::vector<Box> wanted;
  for (const ChunkConsumer& consumer : consumers) wanted.push_back(needed(*consumer.assembly, *consumer.use));
  return batchfs::box_to_decode(*task.array, task.key.chunk, need, wanted, cache_.uses(task.key), cache_.keeps_all());
}

/// There is no memory to fetch this chunk: it waits until another task has run. False when there is no other: then it
/// goes on beyond the budget.
bool ChunkScheduler::postpone(const std::shared_ptr<Task>& task, std::vector<ChunkConsumer>& consumers,
                              Budget::Reservation& memory) {
  const std::lock_guard lock(mutex_);
  if (stopping_ || running_ == 1) return false;
  const bool waited = std::any_of(consumers.begin(), consumers.end(), [](const ChunkConsumer& c) {
    return c.assembly->urgency.load(std::memory_order_relaxed) == kReaderWaits;
  });
  if (!consumers.empty()) consumers.front().assembly->give_ahead(std::move(memory));
  memory.release();
  task->consumers.insert(task->consumers.begin(), std::make_move_iterator(consumers.begin()),
                         std::make_move_iterator(consumers.end()));
  task->running = false;
  --running_;
  if (--fetches_ == 0) no_fetches_.notify_all();
  if (waited) postponed_.push_front(task);
  else postponed_.push_back(task);
  return true;
}

void ChunkScheduler::post(const std::shared_ptr<Task>& task, Urgency urgency) {
  if (urgency >= task->posted || (task->running && !task->arrived)) return;
  task->posted = urgency;
  if (task->arrived) executor_.post(urgency, [this, task] { go_on(task); });
  else if (task->array->store().is_local()) executor_.post(urgency, [this, task] { run(task, Turn::works); });
  else executor_.post(sets_going(urgency), [this, task, urgency] { run(task, Turn::sets_going, urgency); });
}

void ChunkScheduler::go_on(const std::shared_ptr<Task>& task) {
  std::function<void()> work;
  {
    const std::lock_guard lock(mutex_);
    if (!task->arrived) return;
    work = std::exchange(task->arrived, nullptr);
    task->posted = kNever;
  }
  work();
}

/// As urgently as its consumers say; not at all when none of them is started.
void ChunkScheduler::post_started(const std::shared_ptr<Task>& task) {
  Urgency urgency = task->warm ? kReadAhead : kNever;
  for (const ChunkConsumer& consumer : task->consumers)
    if (consumer.assembly->started.load(std::memory_order_relaxed) ||
        consumer.assembly->cancelled.load(std::memory_order_relaxed))
      urgency = std::min(urgency, consumer.assembly->urgency.load(std::memory_order_relaxed));
  post(task, urgency);
}

void ChunkScheduler::interrupt() noexcept {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  for (const auto& [key, task] : tasks_) post(task, kReaderWaits);
}

void ChunkScheduler::wait() {
  std::unique_lock lock(mutex_);
  no_fetches_.wait(lock, [this] { return fetches_ == 0; });
}

void ChunkScheduler::submit(const std::shared_ptr<Assembly>& assembly) noexcept {
  assembly->mixed = [this](const Error& error) {
    ++counters_.errors;
    log_.error(fmt::format("putting a batch together failed: {}", error.what()));
  };
  assembly->begin();
  if (assembly->uses.empty()) {
    const auto done = std::move(assembly->finished);
    done(nullptr);
    return;
  }
  const bool waited = assembly->urgency.load(std::memory_order_relaxed) == kReaderWaits;
  // `uses` must not be touched after its last one is handed over: the assembly may be finished then.
  const std::size_t count = assembly->uses.size();
  for (std::size_t i = 0; i < count; ++i) {
    const Assembly::Use& use = assembly->uses[i];
    const ChunkKey key{use.array.get(), use.chunk};
    const ChunkConsumer consumer{assembly, &use};
    // What is here is taken here, before it is evicted. For a reader that waits, all threads take.
    if (!waited) {
      if (const auto kept = cache_.find(key, needed(*assembly, use))) {
        gather(consumer, *kept);
        assembly->complete(nullptr);
        continue;
      }
    }
    std::unique_lock lock(mutex_);
    if (stopping_) {
      lock.unlock();
      assembly->complete(std::make_exception_ptr(Error(ErrorCode::interrupted, "the engine is ending")));
      continue;
    }
    std::shared_ptr<Task>& task = tasks_[key];
    if (task == nullptr) task = std::make_shared<Task>(Task{key, use.array, {}});
    task->consumers.push_back(consumer);
    post_started(task);
  }
}

void ChunkScheduler::reprioritize(const std::shared_ptr<Assembly>& assembly) noexcept {
  const std::lock_guard lock(mutex_);
  for (const Assembly::Use& use : assembly->uses)
    if (const auto it = tasks_.find({use.array.get(), use.chunk}); it != tasks_.end()) {
      if (it->second->running) post(it->second, assembly->urgency.load(std::memory_order_relaxed));
      else post_started(it->second);
    }
}

void ChunkScheduler::warm(const std::shared_ptr<const Array>& array, std::int64_t chunk) noexcept {
  const ChunkKey key{array.get(), chunk};
  const Box box = whole_chunk(*array, chunk);
  if (box.empty() || budget_.used() + array->chunk_bytes() > budget_.limit()) return;
  const std::lock_guard lock(mutex_);
  if (stopping_ || cache_.find(key, box)) return;
  std::shared_ptr<Task>& task = tasks_[key];
  if (task != nullptr) return;
  task = std::make_shared<Task>(Task{key, array, {}});
  task->warm = true;
  post_started(task);
}

void ChunkScheduler::run(const std::shared_ptr<Task>& task, Turn turn, Urgency urgency) {
  const bool local = task->array->store().is_local();
  std::vector<ChunkConsumer> served, dropped;
  std::optional<DecodedChunk> kept;
  std::shared_ptr<const KeptChunk> stored;
  Box box;
  bool idle = false, is_here = false, later = false;
  std::size_t others = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto it = tasks_.find(task->key);
    if (it == tasks_.end() || it->second != task || task->running) return;  // a second ticket
    task->posted = kNever;
    // Takes those out of the waiting ones that `which` says.
    const auto take = [&](std::vector<ChunkConsumer>& to, auto which) {
      const auto rest = std::stable_partition(task->consumers.begin(), task->consumers.end(),
                                              [&](const ChunkConsumer& c) { return !which(c); });
      to.assign(std::make_move_iterator(rest), std::make_move_iterator(task->consumers.end()));
      task->consumers.erase(rest, task->consumers.end());
    };
    take(dropped, [&](const ChunkConsumer& c) {
      return stopping_ || c.assembly->cancelled.load(std::memory_order_relaxed);
    });
    const ChunkConsumer* first = nullptr;
    for (const ChunkConsumer& consumer : task->consumers)
      if (consumer.assembly->started.load(std::memory_order_relaxed) &&
          (first == nullptr || consumer.assembly->urgency.load() < first->assembly->urgency.load()))
        first = &consumer;
    if (first == nullptr && (!task->warm || stopping_)) {
      idle = true;  // nobody who is left wants it brought
      if (task->consumers.empty()) tasks_.erase(it);
    } else {
      const Box need =
          first != nullptr ? needed(*first->assembly, *first->use) : whole_chunk(*task->array, task->key.chunk);
      // Looked up now and not only when it was submitted: a queue that held chunks would hold memory.
      kept = cache_.find(task->key, need);
      box = kept ? kept->box : box_to_decode(*task, need, task->consumers);
      if (!kept && !local) stored = cache_.find_stored(task->key);
      is_here = kept || local || (stored && task->array->holds(stored->encoded, box));
      later = is_here && turn == Turn::sets_going;
      if (later) {
        task->posted = urgency;
      } else {
        take(served, [&](const ChunkConsumer& c) { return contains(box, needed(*c.assembly, *c.use)); });
        if (kept) {
          task->warm = false;
          if (task->consumers.empty()) tasks_.erase(it);
          else post_started(task);
        } else {
          task->running = true;
          ++running_;
          others = task->consumers.size();
          if (!is_here) ++fetches_;
        }
      }
    }
  }
  for (const ChunkConsumer& consumer : dropped)
    consumer.assembly->complete(
        std::make_exception_ptr(Error(ErrorCode::interrupted, "the reader went away")));
  if (idle) return;
  if (later) {
    executor_.post(urgency, [this, task] { run(task, Turn::works); });
  } else if (kept) {
    for (const ChunkConsumer& consumer : served) {
      gather(consumer, *kept);
      consumer.assembly->complete(nullptr);
    }
  } else if (is_here) {
    decode(task, std::move(box), std::move(served), std::move(stored));
  } else {
    const bool in_pieces = fetches_pieces(*task->array, task->key.chunk, box, 1 + others + cache_.uses(task->key),
                                          stored ? &stored->encoded : nullptr);
    const std::uint64_t bytes = stored_bytes(*task->array, box, in_pieces);
    Budget::Reservation memory = decoder_.find_memory(bytes, served);
    if (memory.bytes() < bytes) {
      if (postpone(task, served, memory)) return;
      decoder_.adjust(memory, bytes, served);
    }
    fetch(task, std::move(box), std::move(served), std::move(stored), in_pieces, std::move(memory));
  }
}

void ChunkScheduler::fetch(const std::shared_ptr<Task>& task, Box box, std::vector<ChunkConsumer> consumers,
                           std::shared_ptr<const KeptChunk> stored, bool in_pieces, Budget::Reservation memory) {
  // Handed over as a whole: copies of the completion that live on in the store's thread must hold nothing,
  // or the last holder of the store could be its own thread.
  struct Fetch {
    std::shared_ptr<Task> task;
    Box box;
    std::vector<ChunkConsumer> consumers;
    std::shared_ptr<const KeptChunk> stored;  // whose pieces are taken over
    Budget::Reservation memory;
    std::uint64_t began = Trace::now();
  };
  const std::shared_ptr<const Array> array = task->array;
  const Dims chunk = array->grid().chunk(task->key.chunk);
  std::shared_ptr<const EncodedChunk> have;
  if (in_pieces && stored != nullptr) have = std::shared_ptr<const EncodedChunk>(stored, &stored->encoded);
  const Box part = box;
  auto fetch = std::make_shared<Fetch>(
      Fetch{task, std::move(box), std::move(consumers), std::move(stored), std::move(memory)});
  auto arrive = [this, fetch](std::variant<EncodedChunk, std::exception_ptr> fetched) {
    struct Arrived : Fetch {
      std::variant<EncodedChunk, std::exception_ptr> outcome;
    };
    auto arrived = std::make_shared<Arrived>(Arrived{std::move(*fetch), std::move(fetched)});
    const auto* came = std::get_if<EncodedChunk>(&arrived->outcome);
    const Array& from = *arrived->task->array;
    trace_.add({.kind = Trace::Kind::fetch,
                .end = came != nullptr ? Trace::End::done : Trace::End::failed,
                .begin = arrived->began,
                .bytes = came != nullptr ? came->held() : 0,
                .of = batch_of(arrived->consumers)},
               from.metadata().path, from.grid().chunk(arrived->task->key.chunk));
    Urgency urgency = kReadAhead;
    for (const ChunkConsumer& consumer : arrived->consumers) urgency = std::min(urgency, consumer.assembly->urgency.load());
    const std::lock_guard lock(mutex_);
    // Moved on before the lock is released: nobody but a worker may then hold the task, and with it the store.
    std::shared_ptr<Task> of = arrived->task;
    // On a worker also when it failed: the store's own thread has better things to do.
    of->arrived = [this, arrived = std::move(arrived)] {
      if (const auto* error = std::get_if<std::exception_ptr>(&arrived->outcome)) {
        finish(arrived->task, arrived->consumers, *error);
        return;
      }
      auto& encoded = std::get<EncodedChunk>(arrived->outcome);
      const std::uint64_t held = encoded.held();
      const bool takes_over = arrived->stored != nullptr && !encoded.pieces.empty();
      counters_.bytes_fetched += held - std::min(held, takes_over ? arrived->stored->encoded.held() : 0);
      ++counters_.chunks_fetched;
      arrived->stored.reset();
      decoder_.adjust(arrived->memory, held, arrived->consumers);
      decode(arrived->task, arrived->box, arrived->consumers,
             std::make_shared<const KeptChunk>(KeptChunk{std::move(encoded), std::move(arrived->memory)}));
    };
    post(of, urgency);
    of.reset();
    if (--fetches_ == 0) no_fetches_.notify_all();
  };
  if (in_pieces) array->fetch_pieces(chunk, part, std::move(have), std::move(arrive));
  else array->fetch(chunk, part, std::move(arrive));
}

void ChunkScheduler::decode(const std::shared_ptr<Task>& task, Box box, std::vector<ChunkConsumer> consumers,
                            std::shared_ptr<const KeptChunk> stored) {
  const Array& array = *task->array;
  ChunkDecoder::Result result;
  try {
    result = decoder_.decode(array, task->key.chunk, box, consumers, stored.get());
  } catch (const std::bad_alloc&) {
    finish(task, consumers,
           std::make_exception_ptr(Error(ErrorCode::no_memory, "out of memory",
                                         array.chunk_name(array.grid().chunk(task->key.chunk)))));
    return;
  } catch (...) {
    finish(task, consumers, std::current_exception());
    return;
  }
  if (stored && !stored->encoded.object_missing && array.chain().has_ranges() &&
      box != whole_chunk(array, task->key.chunk)) {
    serve_others(task, *stored);
    // The whole as it is stored serves the next use better than a part of it.
    if (budget_.used() <= budget_.limit()) cache_.insert_stored(task->key, task->array, std::move(stored));
    result.keep = false;
  }
  finish(task, consumers, std::move(result));
}

/// The chunk is here: those who wait for other parts of it get them now, since it may not be here when they are
/// due, and fetching it again costs more than decoding it early.
void ChunkScheduler::serve_others(const std::shared_ptr<Task>& task, const KeptChunk& stored) {
  std::vector<ChunkConsumer> others;
  const Array& array = *task->array;
  const auto need = [](const ChunkConsumer& consumer) { return needed(*consumer.assembly, *consumer.use); };
  {
    const std::lock_guard lock(mutex_);
    const auto held = std::stable_partition(task->consumers.begin(), task->consumers.end(), [&](const ChunkConsumer& c) {
      return !array.holds(stored.encoded, need(c));
    });
    others.assign(std::make_move_iterator(held), std::make_move_iterator(task->consumers.end()));
    task->consumers.erase(held, task->consumers.end());
  }
  if (others.empty()) return;
  std::size_t served = 0;
  try {
    const Box box = box_to_decode(*task, need(others.front()), others);
    const auto inside = [&](const ChunkConsumer& c) { return contains(box, need(c)); };
    if (stored.encoded.pieces.empty() && std::all_of(others.begin(), others.end(), inside)) {
      decoder_.decode(array, task->key.chunk, box, others, &stored);
      for (; served < others.size(); ++served) others[served].assembly->complete(nullptr);
    } else {
      for (; served < others.size(); ++served) {
        decoder_.decode(array, task->key.chunk, need(others[served]), {&others[served], 1}, &stored);
        others[served].assembly->complete(nullptr);
      }
    }
  } catch (...) {  // what went wrong is told when their own turn comes
    const std::lock_guard lock(mutex_);
    task->consumers.insert(task->consumers.end(), others.begin() + static_cast<std::ptrdiff_t>(served), others.end());
  }
}

void ChunkScheduler::finish(const std::shared_ptr<Task>& task, const std::vector<ChunkConsumer>& consumers,
                            std::variant<ChunkDecoder::Result, std::exception_ptr> outcome) {
  ChunkDecoder::Result* result = std::get_if<ChunkDecoder::Result>(&outcome);
  std::exception_ptr error;
  if (result == nullptr) {
    error = std::get<std::exception_ptr>(outcome);
    try {
      std::rethrow_exception(error);
    } catch (const Error& cause) {
      if (cause.code() != ErrorCode::interrupted) ++counters_.errors;
      const std::string name = task->array->chunk_name(task->array->grid().chunk(task->key.chunk));
      std::string where = cause.where();
      if (where.empty()) where = name;
      else if (where.find(name) == std::string::npos) where = name + ", " + where;
      const Error placed(cause.code(), cause.why(), where);
      if (cause.code() != ErrorCode::interrupted)  // somebody left, nothing is wrong
        log_.error(fmt::format("reading a chunk failed: {}", placed.what()));
      error = std::make_exception_ptr(placed);
    } catch (const std::exception& cause) {
      ++counters_.errors;
      log_.error(fmt::format("reading a chunk failed: {}", cause.what()));
    }
  }
  std::vector<ChunkConsumer> late;
  {
    const std::lock_guard lock(mutex_);
    task->running = false;
    task->warm = false;
    --running_;
    if (result != nullptr && result->chunk) {
      if (!result->keep) {
        // Its stored form is kept instead.
      } else if (result->cache_bytes > 0 && budget_.used() > budget_.limit()) {
        // Granted beyond the budget: it goes when it has been handed over.
      } else if (result->cache_bytes > 0) {
        cache_.insert(task->key, task->array, *result->chunk, result->cache_bytes,
                      std::none_of(consumers.begin(), consumers.end(),
                                   [](const ChunkConsumer& c) { return c.assembly->shares_memory; }));
      } else {
        cache_.insert_weak(task->key, task->array, *result->chunk);
      }
      // Uses that joined during the run and are held by its result.
      const auto rest = std::partition(task->consumers.begin(), task->consumers.end(), [&](auto& c) {
        return !contains(result->chunk->box, needed(*c.assembly, *c.use));
      });
      late.assign(rest, task->consumers.end());
      task->consumers.erase(rest, task->consumers.end());
    }
    if (task->consumers.empty()) {
      tasks_.erase(task->key);
    } else if (stopping_) {
      post(task, kReaderWaits);
    } else {  // the others need another run, also after an error: it may have been theirs alone
      post_started(task);
    }
    // Room for one may be room for some. All of them where nothing else would have them looked at again.
    for (std::size_t n = running_ == 0 ? postponed_.size() : std::min<std::size_t>(postponed_.size(), 4); n > 0; --n) {
      post_started(postponed_.front());
      postponed_.pop_front();
    }
  }
  for (const ChunkConsumer& consumer : late) {
    gather(consumer, *result->chunk);
    consumer.assembly->complete(nullptr);
  }
  for (const ChunkConsumer& consumer : consumers) consumer.assembly->complete(error);
}

}  // namespace batchfs
