#include "engine/pipeline/read_ahead.h"

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "engine/dataset/dataset.h"
#include "engine/pipeline/chunks/chunk_reuse.h"

namespace batchfs {

namespace {

/// Batches that are begun, and batches that are planned, each time that a reader opens one, before
/// the chunks that readers wait for are decoded: they are decoded once for all batches that have
/// begun. The first batch must not wait for all of them.
constexpr std::int64_t kAtOnce = 8;
/// One in this many announcements finds the horizon anew, which moves slowly and costs time.
constexpr std::uint64_t kHorizonEvery = 8;

bool is_local(const View& view) {
  return std::all_of(view.variables().begin(), view.variables().end(),
                     [](const Variable* variable) { return variable->array->store().is_local(); });
}

}  // namespace

void ReadAhead::learn(const BatchRequest& request, bool stalled) {
  if (with_.prefetcher.opened(request, stalled)) with_.cache.set_looking(true);
}

void ReadAhead::make_next(const BatchRequest& request) {
  post(kReaderWaits, [this, request] { prefetch(request); });
}

void ReadAhead::post(Urgency urgency, std::function<void()> guess) {
  with_.executor.post(urgency, [this, guess = std::move(guess)] {
    try {
      guess();
    } catch (...) {
      with_.log.debug(fmt::format("prefetching: {}", error_of(std::current_exception()).what()));
    }
  });
}

void ReadAhead::prefetch(const BatchRequest& request) {
  const std::uint64_t bytes =
      assembler_.memory_of(request.format->layout(*request.view, request.global_batch()));
  // Ranks share chunks: a batch made too far ahead for one evicts chunks that the others are about
  // to use.
  const auto streams = static_cast<std::uint64_t>(with_.prefetcher.streams_read());
  const std::uint64_t limit = with_.budget.limit();
  const bool local = is_local(*request.view);
  const std::uint64_t room = prefetch_memory(limit / streams, bytes, local);
  const std::vector<BatchRequest> wanted = with_.prefetcher.due(request, bytes, room);
  const auto count = static_cast<std::int64_t>(wanted.size());
  std::int64_t soon = kAtOnce;
  bool has_memory = true;
  for (std::int64_t i = 0; i < count; ++i) {
    const BatchTable::RecordPtr joined =
        expect(wanted[static_cast<std::size_t>(i)], i + 1, true, soon);
    if (joined != nullptr && has_memory) has_memory = start(joined);
  }
  if (count == 0) return;
  if (with_.look_ahead.shares_beyond_memory()) {
    const std::int64_t fit = joined_batches(joined_memory(limit, local) / streams, bytes);
    for (const auto& [distance, next] : with_.prefetcher.beyond(request, fit - count))
      expect(next, distance, false, soon);
  }
  post(kReaderWaits, [this, request] { announce_uses(request); });
}

/// Schedules assembly, as soon as for a waiting reader for `soon` more of them. Returns its record
/// if that exists already and must start now.
BatchTable::RecordPtr ReadAhead::expect(const BatchRequest& request, std::int64_t distance,
                                        bool started, std::int64_t& soon) {
  const BatchTable::Expected expected = with_.table.expect(request, distance, started, soon > 0);
  if (expected.assemble != nullptr) {
    // A guess that comes late may be of a batch that its reader has opened and left: nobody would
    // open it. A reader that opens it from now on finds the record.
    if (with_.prefetcher.is_ahead(request))
      assembler_.post(expected.assemble, soon-- > 0);
    else
      with_.table.drop_expected(expected.assemble);
  }
  return expected.start;
}

/// The batch is now prefetched. False when no memory is left for its chunks now.
bool ReadAhead::start(const BatchTable::RecordPtr& record) {
  const std::shared_ptr<Assembly> assembly = with_.table.assembly_to_start(record);
  if (assembly == nullptr) return true;
  if (!assembler_.reserve_for_chunks(*record, *assembly, true, assembler_.is_spare(*record))) {
    with_.prefetcher.on_memory_pressure(record->request);
    return false;
  }
  with_.table.start(record, *assembly);
  with_.scheduler.reprioritize(assembly);
  return true;
}

void ReadAhead::announce_uses(const BatchRequest& request) {
  const bool all = with_.look_ahead.look(
      with_.prefetcher.beyond(request, LookAhead::kBatches), with_.table.now(),
      [this](const BatchRequest& ahead) {
        return with_.table.is_made(ahead.key()) || !with_.prefetcher.is_ahead(ahead);
      },
      kAtOnce);
  if (all) {
    with_.cache.set_looking(false);
  } else if (!looks_on_.exchange(true)) {
    post(kPrefetch, [this, request] {
      looks_on_ = false;
      announce_uses(request);
    });
  }
  if (announcements_++ % kHorizonEvery != 0) return;
  with_.look_ahead.find_horizon();
  with_.reclaimer.release(with_.table.drop_overdue(
      [this](const BatchRequest& made) { return with_.prefetcher.leaves_out(made); }));
}

}  // namespace batchfs
