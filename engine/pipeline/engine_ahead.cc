// What the engine does ahead of its readers: batches that a stream will ask for next are begun, and the chunks of those
// behind them are told to the cache. All of it is guessed, and takes only memory that nobody waits for.

#include <algorithm>

#include <fmt/format.h>

#include "engine/pipeline/engine.h"

namespace batchfs {

namespace {

/// How far batches of a local store are made ahead.
constexpr std::uint64_t kLocalWindowBytes = 256 << 20;
/// Batches that may join chunks on their way, those of the window included. Fewer than are looked at.
constexpr std::int64_t kMostJoined = 96;
/// A prefetched batch that nobody came for while so many others were opened is forgotten.
constexpr Urgency kOverdue = 256;

}  // namespace

void Engine::post_guess(Urgency urgency, std::function<void()> work) {
  executor_.post(urgency, [this, work = std::move(work)] {
    try {
      work();
    } catch (...) {
      log_.debug(fmt::format("prefetching: {}", error_of(std::current_exception()).what()));
    }
  });
}

void Engine::prefetch(const BatchRequest& request, std::uint64_t bytes) {
  // Half of the memory is for chunks and for what readers hold. Where no request takes long, a reader that
  // waits waits for the processors: a longer window would only take memory, and fresh memory costs time.
  // Ranks share chunks: what one makes too far ahead drives out what the others are about to use.
  const auto streams = static_cast<std::uint64_t>(prefetcher_.streams_read());
  std::uint64_t room = budget_.limit() / 2 / streams;
  const auto& variables = request.view->variables();
  const bool local = std::all_of(variables.begin(), variables.end(), [](const Variable* variable) {
    return variable->array->store().is_local();
  });
  if (local) room = std::min(room, std::max(kLocalWindowBytes, 2 * bytes));
  const std::vector<BatchRequest> wanted = prefetcher_.window(request, bytes, room);
  const auto window = static_cast<std::int64_t>(wanted.size());
  bool memory = true;
  for (std::int64_t i = 0; i < window; ++i) {
    const std::shared_ptr<Entry> joined = expect(wanted[static_cast<std::size_t>(i)], i + 1, true);
    if (joined != nullptr && memory) memory = start(joined);
  }
  if (window == 0) return;
  if (look_ahead_.shares_beyond_memory()) {
    // What is on its way from a remote store takes memory too.
    const std::uint64_t share = (local ? budget_.limit() / 4 * 3 : budget_.limit() / 2) / streams;
    const auto fit = static_cast<std::int64_t>(share / std::max<std::uint64_t>(bytes, 1));
    for (const auto& [distance, next] : prefetcher_.beyond(request, std::min(fit, kMostJoined) - window))
      expect(next, distance, false);
  }
  post_guess(kPrefetch, [this, request] { look_ahead(request); });
}

/// Has the batch assembled, `distance` batches from now. Gives it if it was there and is to be started now.
std::shared_ptr<Engine::Entry> Engine::expect(const BatchRequest& request, std::int64_t distance, bool started) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return nullptr;
  std::shared_ptr<Entry>& entry = entries_[request.key()];
  if (entry != nullptr) return started && !entry->started ? entry : nullptr;
  entry = std::make_shared<Entry>();
  entry->request = request;
  entry->urgency = kPrefetch + static_cast<Urgency>(now_) + distance;
  entry->started = started;
  post_assemble(entry);
  return nullptr;
}

void Engine::look_ahead(const BatchRequest& request) {
  const std::vector<Prefetcher::Ahead> ahead = prefetcher_.beyond(request, LookAhead::kBatches);
  std::uint64_t now = 0;
  {
    const std::lock_guard lock(mutex_);
    now = now_;
  }
  look_ahead_.look(ahead, now, [this](const BatchKey& batch) {
    const std::lock_guard lock(mutex_);
    return stopping_ || entries_.contains(batch);
  });
  {
    // What follows moves slowly, and is not free.
    const std::lock_guard lock(mutex_);
    if (looks_ahead_++ % 8 != 0) return;
  }
  look_ahead_.find_horizon();
  drop_overdue();
}

void Engine::drop_overdue() {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Entry>> overdue;
  for (const auto& [key, entry] : entries_)
    if (!entry->opened && entry->waiters.empty() && entry->urgency != kReaderWaits &&
        entry->urgency + kOverdue < static_cast<Urgency>(now_))
      overdue.push_back(entry);
  for (const std::shared_ptr<Entry>& entry : overdue) drop(entry);
}

/// A prefetch waits for room for its chunks too, but never for more than a share of the memory.
bool Engine::reserve_ahead(const Entry& entry, Assembly& assembly, bool waited, bool submitted) {
  const std::uint64_t bytes = std::min(scheduler_.memory_ahead(assembly, submitted), budget_.limit() / 4);
  if (bytes == 0) return true;
  Budget::Reservation ahead = waited ? budget_.try_reserve(bytes) : make_room(bytes, false, keep_until(entry));
  const bool reserved = static_cast<bool>(ahead);
  if (reserved) assembly.give_ahead(std::move(ahead));
  return reserved || waited;
}

/// The batch has come into its stream's window. False when there is no memory for its chunks now.
bool Engine::start(const std::shared_ptr<Entry>& entry) {
  std::shared_ptr<Assembly> assembly;
  {
    const std::lock_guard lock(mutex_);
    if (entry->submitted) assembly = entry->assembly;
    if (assembly == nullptr) {  // ready, or assemble() starts it
      entry->started = true;
      return true;
    }
  }
  if (!reserve_ahead(*entry, *assembly, false, true)) {
    prefetcher_.pressed(entry->request);
    return false;
  }
  const std::lock_guard lock(mutex_);
  entry->started = true;
  assembly->started = true;
  scheduler_.hurry(assembly);
  return true;
}

}  // namespace batchfs
