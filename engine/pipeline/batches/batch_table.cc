#include "engine/pipeline/batches/batch_table.h"

#include <algorithm>

#include "engine/base/invariant.h"
#include "engine/view/samples/mask.h"

namespace batchfs {

namespace {

/// Ready batches that were opened and are kept for another reader of the same stream: at most this
/// many, and these bytes, but always one.
constexpr std::size_t kMaxKept = 4;
constexpr std::uint64_t kMaxKeptBytes = 256 << 20;
/// A prefetched batch that nobody opened while this many others were opened is dropped.
constexpr Urgency kOverdue = 256;

}  // namespace

BatchTable::Opened BatchTable::open(const BatchRequest& request, Waiter& waiter) {
  Opened result;
  const std::lock_guard lock(mutex_);
  if (stopping_) {
    result.refused = true;
    return result;
  }
  RecordPtr& record = records_[request.key()];
  const bool is_new = record == nullptr;
  if (is_new) record = std::make_shared<Record>(request);
  if (record->opens++ == 0) {
    result.first = true;
    ++counters_.batches_opened;
    ++now_;
    opened_.push_back(request.key());
  }
  if (record->batch != nullptr) {
    result.ready = record->batch;
  } else {
    waiter.on_leave = [this, record](WaiterId id) { leave(record, id); };
    result.waiter = waiters_.add(waiter);
    record->waiters.push_back(result.waiter);
    const bool was_prefetch = record->urgency != kReaderWaits;
    record->urgency = kReaderWaits;
    record->started = true;
    if (record->assembly != nullptr) {
      record->assembly->cancelled = false;
      if (was_prefetch) {
        record->assembly->urgency = kReaderWaits;
        record->assembly->started = true;
        if (record->submitted) result.reprioritize = record->assembly;
      }
    } else if ((is_new || was_prefetch) && !record->queued) {
      result.assemble = record;
    }
  }
  trim_opened(result.dropped);
  return result;
}

void BatchTable::leave(const RecordPtr& record, WaiterId waiter) {
  const bool due = is_due_(record->request);
  const std::lock_guard lock(mutex_);
  std::erase(record->waiters, waiter);
  if (record->waiters.empty() && record->assembly != nullptr && !due)
    record->assembly->cancelled = true;
}

BatchTable::Expected BatchTable::expect(const BatchRequest& request, std::int64_t distance,
                                        bool started, bool soon) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return {};
  RecordPtr& record = records_[request.key()];
  if (record != nullptr) {
    const bool hurries = soon && !record->soon && record->opens == 0 &&
                         record->assembly == nullptr && record->batch == nullptr;
    if (hurries) record->soon = true;
    return {.assemble = hurries ? record : nullptr,
            .start = started && !record->started ? record : nullptr};
  }
  record = std::make_shared<Record>(request);
  record->soon = soon;
  record->urgency = kPrefetch + static_cast<Urgency>(now_) + distance;
  record->started = started;
  return {.assemble = record};
}

void BatchTable::drop_expected(const RecordPtr& record) {
  const std::lock_guard lock(mutex_);
  if (record->opens == 0) forget(record);
}

std::shared_ptr<Assembly> BatchTable::assembly_to_start(const RecordPtr& record) {
  const std::lock_guard lock(mutex_);
  if (record->submitted && record->assembly != nullptr) return record->assembly;
  record->started = true;
  return nullptr;
}

void BatchTable::start(const RecordPtr& record, Assembly& assembly) {
  const std::lock_guard lock(mutex_);
  record->started = true;
  assembly.started = true;
}

std::optional<BatchTable::Begun> BatchTable::begin(const RecordPtr& record) {
  const std::lock_guard lock(mutex_);
  const auto it = records_.find(record->request.key());
  if (it == records_.end() || it->second != record || record->assembly || record->batch ||
      record->queued)
    return {};
  Begun begun;
  begun.waited = record->urgency == kReaderWaits;
  begun.granted = std::move(record->granted);
  if (stopping_) return begun;
  record->assembly = std::make_shared<Assembly>();
  record->assembly->urgency = record->urgency;
  record->assembly->started = record->started;
  record->began = Trace::now();
  begun.assembly = record->assembly;
  return begun;
}

bool BatchTable::submitted(const RecordPtr& record, Assembly& assembly, bool waited) {
  const std::lock_guard lock(mutex_);
  if (record->assembly.get() != &assembly) return false;
  record->submitted = true;
  // A reader may have come while the list was being made, or the batch become due, or dropped.
  const bool awaited = !waited && record->urgency == kReaderWaits;
  const bool due = record->started && !assembly.started;
  if (due) assembly.started = true;
  return awaited || due || assembly.cancelled;
}

void BatchTable::queue(const RecordPtr& record) {
  const std::lock_guard lock(mutex_);
  record->assembly = nullptr;
  record->queued = true;
}

void BatchTable::grant(const RecordPtr& record, Budget::Reservation memory) {
  const std::lock_guard lock(mutex_);
  record->queued = false;
  record->granted = std::move(memory);
}

bool BatchTable::drop_queued(const RecordPtr& record) {
  const std::lock_guard lock(mutex_);
  if (!record->waiters.empty()) return false;
  record->queued = false;
  forget(record);
  return true;
}

BatchTable::GivenUp BatchTable::give_up(const RecordPtr& record) {
  const std::lock_guard lock(mutex_);
  record->assembly = nullptr;
  if (!record->waiters.empty()) return GivenUp::assemble_again;
  forget(record);
  return record->started ? GivenUp::dropped_started : GivenUp::dropped;
}

BatchTable::Completed BatchTable::complete(const RecordPtr& record, std::shared_ptr<Batch> batch,
                                           bool interrupted) {
  const std::lock_guard lock(mutex_);
  check_invariant(record->batch == nullptr, "a batch is completed once");
  record->submitted = false;
  record->queued = false;
  record->assembly = nullptr;
  if (interrupted && !record->waiters.empty() && !stopping_) return {.assemble_again = true};
  if (batch == nullptr)
    forget(record);  // the next open tries again
  else
    record->batch = std::move(batch);
  return {.waiters = std::exchange(record->waiters, {}), .began = record->began};
}

/// Precondition: mutex_ is held.
void BatchTable::forget(const RecordPtr& record) {
  const auto it = records_.find(record->request.key());
  if (it != records_.end() && it->second == record) records_.erase(it);
}

/// Precondition: mutex_ is held, and no reader waits for the record.
void BatchTable::drop(const RecordPtr& record, Dropped& dropped) {
  dropped.records.push_back(record);
  if (record->assembly != nullptr) {
    record->assembly->cancelled = true;
    if (record->submitted) dropped.cancelled.push_back(record->assembly);
  }
  forget(dropped.records.back());
}

/// Precondition: mutex_ is held.
void BatchTable::trim_opened(Dropped& dropped) {
  std::uint64_t bytes = 0;
  for (const BatchKey& key : opened_) {
    const auto it = records_.find(key);
    if (it != records_.end() && it->second->batch != nullptr) bytes += it->second->batch->bytes();
  }
  while (opened_.size() > kMaxKept || (opened_.size() > 1 && bytes > kMaxKeptBytes)) {
    const std::uint64_t before = drop_oldest(dropped, true);
    if (before == 0) return;
    bytes -= std::min(bytes, before);
  }
}

/// Precondition: mutex_ is held, and the batch is ready. A reader opens the files of a batch one
/// after the other: if the batch went in between, it would be made again.
bool BatchTable::is_being_read(const Record& record) const {
  const BatchRequest& request = record.request;
  return record.opens < record.batch->files.size() &&
         std::none_of(opened_.begin(), opened_.end(), [&](const BatchKey& key) {
           const auto other = records_.find(key);
           if (other == records_.end()) return false;
           const BatchRequest& later = other->second->request;
           return later.view == request.view && later.format == request.format &&
                  later.rank == request.rank && later.world == request.world &&
                  std::pair(later.epoch, later.batch) > std::pair(request.epoch, request.batch);
         });
}

/// Precondition: mutex_ is held. The bytes of the batch; its memory goes with its last holder.
std::uint64_t BatchTable::drop_oldest(Dropped& dropped, bool being_read_too) {
  for (auto it = opened_.begin(); it != opened_.end(); ++it) {
    const auto found = records_.find(*it);
    if (found != records_.end() && found->second->batch == nullptr) continue;
    if (!being_read_too && found != records_.end() && is_being_read(*found->second)) continue;
    std::uint64_t bytes =
        1;  // a batch of no bytes, or a key whose batch is gone, counts as something
    if (found != records_.end()) {
      bytes = std::max(bytes, found->second->batch->bytes());
      dropped.records.push_back(std::move(found->second));
      records_.erase(found);
    }
    opened_.erase(it);
    return bytes;
  }
  return 0;
}

bool BatchTable::drop_opened(Dropped& dropped) {
  const std::lock_guard lock(mutex_);
  return drop_oldest(dropped, false) > 0;
}

bool BatchTable::drop_any_opened(Dropped& dropped) {
  const std::lock_guard lock(mutex_);
  return drop_oldest(dropped, true) > 0;
}

bool BatchTable::drop_least_urgent(Dropped& dropped) {
  const std::lock_guard lock(mutex_);
  RecordPtr victim;
  for (const auto& [key, record] : records_) {
    const bool idle = record->batch != nullptr || (record->submitted && !record->started);
    if (idle && record->opens == 0 && (victim == nullptr || record->urgency > victim->urgency))
      victim = record;
  }
  if (victim == nullptr) return false;
  drop(victim, dropped);
  return true;
}

BatchTable::Dropped BatchTable::drop_overdue(
    const std::function<bool(const BatchRequest&)>& is_left_out) {
  Dropped dropped;
  const std::lock_guard lock(mutex_);
  std::vector<RecordPtr> overdue;
  for (const auto& [key, record] : records_)
    if (record->opens == 0 && record->waiters.empty() && record->urgency != kReaderWaits &&
        (record->urgency + kOverdue < static_cast<Urgency>(now_) || is_left_out(record->request)))
      overdue.push_back(record);
  for (const RecordPtr& record : overdue) drop(record, dropped);
  return dropped;
}

BatchTable::Dropped BatchTable::drop_all() {
  Dropped dropped;
  const std::lock_guard lock(mutex_);
  std::vector<RecordPtr> unwanted;
  for (const auto& [key, record] : records_)
    if (record->waiters.empty()) unwanted.push_back(record);
  for (const RecordPtr& record : unwanted) drop(record, dropped);
  opened_.clear();
  return dropped;
}

BatchTable::Dropped BatchTable::drop_views(const std::function<bool(const View&)>& chosen) {
  Dropped dropped;
  const std::lock_guard lock(mutex_);
  std::vector<RecordPtr> unwanted;
  for (const auto& [key, record] : records_)
    if (record->waiters.empty() && chosen(*record->request.view)) unwanted.push_back(record);
  for (const RecordPtr& record : unwanted) {
    std::erase(opened_, record->request.key());
    drop(record, dropped);
  }
  return dropped;
}

bool BatchTable::is_made(const BatchKey& key) const {
  const std::lock_guard lock(mutex_);
  return stopping_ || records_.contains(key);
}

bool BatchTable::is_at_work() const {
  const std::lock_guard lock(mutex_);
  return std::any_of(records_.begin(), records_.end(),
                     [](const auto& record) { return record.second->submitted; });
}

std::uint64_t BatchTable::now() const {
  const std::lock_guard lock(mutex_);
  return now_;
}

Urgency BatchTable::urgency(const Record& record) const {
  const std::lock_guard lock(mutex_);
  return record.urgency;
}

std::int64_t BatchTable::distance(const Record& record) const {
  const std::lock_guard lock(mutex_);
  return record.urgency - kPrefetch - static_cast<std::int64_t>(now_);
}

std::size_t BatchTable::waiters(const Record& record) const {
  const std::lock_guard lock(mutex_);
  return record.waiters.size();
}

void BatchTable::stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
}

}  // namespace batchfs
