#include "engine/pipeline/chunks/chunk_scheduler.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "engine/pipeline/chunks/chunk_costs.h"

namespace batchfs {

ChunkScheduler::ChunkScheduler(Executor& executor, Budget& budget, ChunkCache& cache,
                               Counters& counters, Trace& trace, Log& log,
                               std::function<bool()> release_batch)
    : executor_(executor),
      budget_(budget),
      cache_(cache),
      counters_(counters),
      log_(log),
      decoder_(budget, cache, counters, trace, std::move(release_batch)),
      fetcher_(decoder_, counters, trace) {}

std::uint64_t ChunkScheduler::memory_ahead(const Assembly& assembly, bool submitted) const {
  std::uint64_t sum = 0;
  for (const Assembly::Use& use : assembly.uses) {
    const Array& array = *use.array;
    if (array.store().is_local()) continue;
    const ChunkKey key{use.array.get(), use.chunk};
    {
      const std::lock_guard lock(mutex_);
      const auto it = tasks_.find(key);
      if (it == tasks_.end() ? submitted : it->second->running) continue;  // served, or running
    }
    const Box need = needed(assembly, use);
    if (cache_.holds(key, need)) continue;
    const FetchChoice choice =
        choose_fetching(array, use.chunk, need, 1 + cache_.uses(key), nullptr);
    sum += stored_bytes(array, need, choice.in_pieces);
  }
  return sum;
}

Box ChunkScheduler::box_to_decode(const ChunkTask& task, const Box& need,
                                  const std::vector<ChunkConsumer>& consumers) const {
  const std::size_t later = cache_.uses(task.key);
  bool keeps = later > 0 && cache_.keeps_all();
  std::vector<Box> wanted;
  for (const ChunkConsumer& consumer : consumers) {
    wanted.push_back(consumer.missing);
    keeps = keeps || consumer.assembly->keeps_whole_chunks;
  }
  return choose_decoding(*task.array, task.key.chunk, need, wanted, later, keeps).box;
}

/// No memory is left to fetch this chunk: it waits until another task has run. False when there is
/// no other: then the chunk exceeds the budget.
bool ChunkScheduler::postpone(const std::shared_ptr<ChunkTask>& task,
                              std::vector<ChunkConsumer>& consumers, Budget::Reservation& memory) {
  const std::lock_guard lock(mutex_);
  if (stopping_ || running_ == 1) return false;
  const bool waited = std::any_of(consumers.begin(), consumers.end(), [](const ChunkConsumer& c) {
    return c.assembly->urgency.load(std::memory_order_relaxed) == kReaderWaits;
  });
  if (!consumers.empty()) consumers.front().assembly->give_ahead(std::move(memory));
  memory.release();
  task->put_back(std::move(consumers));
  task->running = false;
  --running_;
  if (--fetches_ == 0) no_fetches_.notify_all();
  if (waited)
    postponed_.push_front(task);
  else
    postponed_.push_back(task);
  return true;
}

/// Precondition: mutex_ is held.
void ChunkScheduler::post(const std::shared_ptr<ChunkTask>& task, Urgency urgency) {
  if (urgency >= task->posted || (task->running && !task->arrived)) return;
  withdraw(*task);
  task->posted = urgency;
  if (task->arrived)
    task->ticket = executor_.post(urgency, [this, task] { process_arrived(task); });
  else if (task->array->store().is_local())
    task->ticket = executor_.post(urgency, [this, task] { run(task, Turn::works); });
  else
    task->ticket = executor_.post(io_start(urgency),
                                  [this, task, urgency] { run(task, Turn::starts_io, urgency); });
}

/// Precondition: mutex_ is held.
void ChunkScheduler::withdraw(ChunkTask& task) {
  executor_.withdraw(std::exchange(task.ticket, {}));
  task.posted = ChunkTask::kNever;
}

/// Precondition: mutex_ is held, and the task has no consumers.
void ChunkScheduler::forget(ChunkTask& task) {
  withdraw(task);
  tasks_.erase(task.key);
}

/// Decodes the fetched chunk, unless another run has.
void ChunkScheduler::process_arrived(const std::shared_ptr<ChunkTask>& task) {
  std::function<void()> work;
  {
    const std::lock_guard lock(mutex_);
    if (!task->arrived) return;
    work = std::exchange(task->arrived, nullptr);
    withdraw(*task);
  }
  work();
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
  // `uses` must not be touched after its last one is handed over: the assembly may be finished
  // then.
  const std::size_t count = assembly->uses.size();
  for (std::size_t i = 0; i < count; ++i) {
    const Assembly::Use& use = assembly->uses[i];
    const ChunkKey key{use.array.get(), use.chunk};
    const ChunkConsumer consumer{assembly, &use, needed(*assembly, use)};
    // Takes a cached chunk here, before it is evicted. For a reader that waits, all threads take.
    if (!waited) {
      if (const auto kept = cache_.find(key, consumer.missing)) {
        gather(consumer, *kept);
        assembly->complete(nullptr);
        continue;
      }
    }
    std::unique_lock lock(mutex_);
    if (stopping_) {
      lock.unlock();
      assembly->complete(
          std::make_exception_ptr(Error(ErrorCode::interrupted, "the engine is ending")));
      continue;
    }
    std::shared_ptr<ChunkTask>& task = tasks_[key];
    if (task == nullptr) task = std::make_shared<ChunkTask>(ChunkTask{key, use.array});
    task->consumers.push_back(consumer);
    post(task, task->urgency());
  }
}

void ChunkScheduler::reprioritize(const std::shared_ptr<Assembly>& assembly) noexcept {
  const std::lock_guard lock(mutex_);
  for (const Assembly::Use& use : assembly->uses)
    if (const auto it = tasks_.find({use.array.get(), use.chunk}); it != tasks_.end()) {
      if (it->second->running)
        post(it->second, assembly->urgency.load(std::memory_order_relaxed));
      else
        post(it->second, it->second->urgency());
    }
}

void ChunkScheduler::warm(const std::shared_ptr<const Array>& array, std::int64_t chunk) noexcept {
  const ChunkKey key{array.get(), chunk};
  const Box box = whole_chunk(*array, chunk);
  if (box.empty() || budget_.used() + array->chunk_bytes() > budget_.limit()) return;
  const std::lock_guard lock(mutex_);
  if (stopping_ || cache_.find(key, box)) return;
  std::shared_ptr<ChunkTask>& task = tasks_[key];
  if (task != nullptr) return;
  task = std::make_shared<ChunkTask>(ChunkTask{key, array});
  task->warm = true;
  post(task, task->urgency());
}

/// The next step of a task: it is decided under the lock, and done after it.
struct ChunkScheduler::Decision {
  struct ServeKept {
    DecodedChunk kept;
  };
  struct DecodeBox {
    Box box;
    std::shared_ptr<const KeptChunk> stored;
  };
  struct FetchBox {
    Box box;
    std::shared_ptr<const KeptChunk> stored;
    std::size_t others = 0;  // consumers that wait for another run
  };
  struct Nothing {};
  std::variant<Nothing, ServeKept, DecodeBox, FetchBox> next;
  std::vector<ChunkConsumer> served = {};   // by what is done next
  std::vector<ChunkConsumer> dropped = {};  // their readers went away
};

ChunkScheduler::Decision ChunkScheduler::decide(const std::shared_ptr<ChunkTask>& task, Turn turn,
                                                Urgency urgency) {
  Decision decision;
  const std::lock_guard lock(mutex_);
  const auto it = tasks_.find(task->key);
  if (it == tasks_.end() || it->second != task || task->running) return decision;  // second ticket
  withdraw(*task);
  decision.dropped = task->take([&](const ChunkConsumer& c) {
    return stopping_ || c.assembly->cancelled.load(std::memory_order_relaxed);
  });
  const ChunkConsumer* first = task->most_urgent();
  if (first == nullptr && (!task->warm || stopping_)) {
    // None of the remaining consumers wants it fetched.
    if (task->consumers.empty()) forget(*task);
    return decision;
  }
  const Box need = first != nullptr ? first->missing : whole_chunk(*task->array, task->key.chunk);
  const bool local = task->array->store().is_local();
  // Looked up now and not only when it was submitted: a queue that held chunks would hold memory.
  std::optional<DecodedChunk> kept = cache_.find(task->key, need);
  const Box box = kept ? kept->box : box_to_decode(*task, need, task->consumers);
  std::shared_ptr<const KeptChunk> stored;
  if (!kept && !local) stored = cache_.find_stored(task->key);
  const bool is_here = kept || local || (stored && task->array->holds(stored->encoded, box));
  if (is_here && turn == Turn::starts_io) {
    task->posted = urgency;
    task->ticket = executor_.post(urgency, [this, task] { run(task, Turn::works); });
    return decision;
  }
  decision.served = task->take([&](const ChunkConsumer& c) { return contains(box, c.missing); });
  if (kept) {
    task->warm = false;
    if (task->consumers.empty())
      forget(*task);
    else
      post(task, task->urgency());
    decision.next = Decision::ServeKept{*std::move(kept)};
    return decision;
  }
  task->running = true;
  ++running_;
  if (is_here) {
    decision.next = Decision::DecodeBox{box, std::move(stored)};
  } else {
    ++fetches_;
    decision.next = Decision::FetchBox{box, std::move(stored), task->consumers.size()};
  }
  return decision;
}

void ChunkScheduler::run(const std::shared_ptr<ChunkTask>& task, Turn turn, Urgency urgency) {
  Decision decision = decide(task, turn, urgency);
  for (const ChunkConsumer& consumer : decision.dropped)
    consumer.assembly->complete(
        std::make_exception_ptr(Error(ErrorCode::interrupted, "the reader went away")));
  if (const auto* gathers = std::get_if<Decision::ServeKept>(&decision.next)) {
    for (const ChunkConsumer& consumer : decision.served) {
      gather(consumer, gathers->kept);
      consumer.assembly->complete(nullptr);
    }
  } else if (auto* decodes = std::get_if<Decision::DecodeBox>(&decision.next)) {
    decode(task, std::move(decodes->box), std::move(decision.served), std::move(decodes->stored));
  } else if (auto* fetches = std::get_if<Decision::FetchBox>(&decision.next)) {
    fetch_within_memory(task,
                        {.array = task->array,
                         .chunk = task->key.chunk,
                         .box = std::move(fetches->box),
                         .consumers = std::move(decision.served),
                         .stored = std::move(fetches->stored)},
                        fetches->others);
  }
}

void ChunkScheduler::fetch_within_memory(const std::shared_ptr<ChunkTask>& task,
                                         ChunkFetcher::Fetch fetched, std::size_t others) {
  fetched.in_pieces = choose_fetching(*task->array, task->key.chunk, fetched.box,
                                      1 + others + cache_.uses(task->key),
                                      fetched.stored ? &fetched.stored->encoded : nullptr)
                          .in_pieces;
  const std::uint64_t bytes = stored_bytes(*task->array, fetched.box, fetched.in_pieces);
  try {
    decoder_.check_size(static_cast<std::uint64_t>(fetched.box.elements()) *
                        task->array->type().itemsize);
  } catch (...) {
    {
      const std::lock_guard lock(mutex_);
      if (--fetches_ == 0) no_fetches_.notify_all();
    }
    return finish(task, fetched.consumers, std::current_exception());
  }
  fetched.memory = decoder_.find_memory(bytes, fetched.consumers);
  if (fetched.memory.bytes() < bytes) {
    if (postpone(task, fetched.consumers, fetched.memory)) return;
    decoder_.adjust(fetched.memory, bytes, fetched.consumers);
  }
  fetch(task, std::move(fetched));
}

void ChunkScheduler::fetch(const std::shared_ptr<ChunkTask>& task, ChunkFetcher::Fetch fetch) {
  // `own` can be moved from: a captured copy of a const reference could not, and would stay with
  // the store's thread.
  fetcher_.fetch(
      std::move(fetch), [this, own = task](std::shared_ptr<ChunkFetcher::Fetch> fetched) mutable {
        Urgency urgency = kReadAhead;
        for (const ChunkConsumer& consumer : fetched->consumers)
          urgency = std::min(urgency, consumer.assembly->urgency.load());
        std::shared_ptr<ChunkTask> of = std::move(own);
        const std::lock_guard lock(mutex_);
        // On a worker also when it failed: the store's own thread has better things to do.
        of->arrived = [this, of, fetched = std::move(fetched)] {
          if (const auto* error = std::get_if<std::exception_ptr>(&fetched->outcome))
            return finish(of, fetched->consumers, *error);
          std::shared_ptr<const KeptChunk> stored = fetcher_.accept(*fetched);
          decode(of, std::move(fetched->box), std::move(fetched->consumers), std::move(stored));
        };
        post(of, urgency);
        // Before the lock is released: from then on nobody but a worker may hold the task, and with
        // it the store.
        of.reset();
        if (--fetches_ == 0) no_fetches_.notify_all();
      });
}

void ChunkScheduler::decode(const std::shared_ptr<ChunkTask>& task, Box box,
                            std::vector<ChunkConsumer> consumers,
                            std::shared_ptr<const KeptChunk> stored) {
  const Array& array = *task->array;
  const bool is_part = box != whole_chunk(array, task->key.chunk);
  std::vector<ChunkConsumer> others;
  if (is_part && !array.chain().is_plain()) {
    const std::lock_guard lock(mutex_);
    others = std::exchange(task->consumers, {});
  }
  ChunkDecoder::Result result;
  std::exception_ptr error;
  try {
    result = decoder_.decode(array, task->key.chunk, box, consumers, stored.get(), others);
  } catch (const std::bad_alloc&) {
    error = std::make_exception_ptr(Error(ErrorCode::no_memory, "out of memory",
                                          array.chunk_name(array.grid().chunk(task->key.chunk))));
  } catch (...) {
    error = std::current_exception();
  }
  if (!others.empty()) {
    // Consumers that joined after `consumers` were taken may have everything by now.
    const auto done = std::stable_partition(
        others.begin(), others.end(),
        [&](const ChunkConsumer& c) { return error != nullptr || !c.missing.empty(); });
    consumers.insert(consumers.end(), std::make_move_iterator(done),
                     std::make_move_iterator(others.end()));
    others.erase(done, others.end());
    const std::lock_guard lock(mutex_);
    task->put_back(std::move(others));
  }
  if (error) return finish(task, consumers, error);
  if (stored && !stored->encoded.object_missing && array.chain().has_ranges() && is_part) {
    serve_others(task, *stored);
    // The whole as it is stored serves the next use better than a part of it.
    if (budget_.used() <= budget_.limit())
      cache_.insert_stored(task->key, task->array, std::move(stored));
    result.keep = false;
  }
  finish(task, consumers, std::move(result));
}

/// The chunk is here: consumers that wait for other parts of it get them now. It may not be here
/// when they are due, and fetching it again costs more than decoding it early.
void ChunkScheduler::serve_others(const std::shared_ptr<ChunkTask>& task, const KeptChunk& stored) {
  const Array& array = *task->array;
  std::vector<ChunkConsumer> others;
  {
    const std::lock_guard lock(mutex_);
    others =
        task->take([&](const ChunkConsumer& c) { return array.holds(stored.encoded, c.missing); });
  }
  try {
    while (!others.empty()) {
      Box box = box_to_decode(*task, others.front().missing, others);
      if (!array.holds(stored.encoded, box)) box = others.front().missing;
      const auto rest =
          std::stable_partition(others.begin(), others.end(),
                                [&](const ChunkConsumer& c) { return contains(box, c.missing); });
      const auto count = static_cast<std::size_t>(rest - others.begin());
      const std::span all(others);
      decoder_.decode(array, task->key.chunk, box, all.first(count), &stored, all.subspan(count));
      const auto served = std::stable_partition(
          rest, others.end(), [](const ChunkConsumer& c) { return c.missing.empty(); });
      for (auto it = others.begin(); it != served; ++it) it->assembly->complete(nullptr);
      others.erase(others.begin(), served);
    }
  } catch (...) {
    // Reported when it is the turn of those that are left.
    const std::lock_guard lock(mutex_);
    task->put_back(std::move(others));
  }
}

/// Counts and logs a failure, unless it is that of a reader that left; of an object that changed
/// only the first. Returns it with the chunk's name.
std::exception_ptr ChunkScheduler::report(const ChunkTask& task, std::exception_ptr failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& cause) {
    const std::string name = task.array->chunk_name(task.array->grid().chunk(task.key.chunk));
    std::string where = cause.where();
    const bool has_name = where.starts_with(name + ", ");
    const std::string object = where.empty() ? name
                               : has_name    ? where.substr(name.size() + 2)
                                             : where;
    if (where.empty())
      where = name;
    else if (where.find(name) == std::string::npos)
      where = name + ", " + where;
    const Error placed(cause.code(), cause.why(), where);
    failure = std::make_exception_ptr(placed);
    if (cause.code() == ErrorCode::interrupted) return failure;
    if (cause.code() != ErrorCode::stale || stale_.add(object))
      log_.error(fmt::format("reading a chunk failed: {}", placed.what()));
  } catch (const std::exception& cause) {
    log_.error(fmt::format("reading a chunk failed: {}", cause.what()));
  }
  ++counters_.errors;
  return failure;
}

void ChunkScheduler::finish(const std::shared_ptr<ChunkTask>& task,
                            const std::vector<ChunkConsumer>& consumers,
                            std::variant<ChunkDecoder::Result, std::exception_ptr> outcome) {
  ChunkDecoder::Result* result = std::get_if<ChunkDecoder::Result>(&outcome);
  std::exception_ptr error;
  if (result == nullptr) error = report(*task, std::get<std::exception_ptr>(outcome));
  std::vector<ChunkConsumer> late;
  {
    const std::lock_guard lock(mutex_);
    task->running = false;
    task->warm = false;
    check_invariant(--running_ >= 0, "a task of a chunk ends once");
    if (result != nullptr && result->chunk) {
      if (!result->keep) {
        // Its stored form is kept instead.
      } else if (result->cache_bytes > 0 && budget_.used() > budget_.limit()) {
        // Granted beyond the budget: it goes when it has been handed over.
      } else if (result->cache_bytes > 0) {
        cache_.insert(task->key, task->array, *result->chunk, result->cache_bytes,
                      std::none_of(consumers.begin(), consumers.end(), [](const ChunkConsumer& c) {
                        return c.assembly->shares_memory;
                      }));
      } else {
        cache_.insert_weak(task->key, task->array, *result->chunk);
      }
      // Uses that joined during the run and are held by its result.
      late = task->take(
          [&](const ChunkConsumer& c) { return contains(result->chunk->box, c.missing); });
    }
    if (task->consumers.empty()) {
      forget(*task);
    } else if (stopping_) {
      post(task, kReaderWaits);
    } else {  // the others need another run, also after an error: it may have been theirs alone
      post(task, task->urgency());
    }
    // Room for one may be room for some. All of them where nothing else would have them looked at
    // again.
    for (std::size_t n = running_ == 0 ? postponed_.size()
                                       : std::min<std::size_t>(postponed_.size(), 4);
         n > 0; --n) {
      post(postponed_.front(), postponed_.front()->urgency());
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
