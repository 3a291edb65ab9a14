#pragma once
// The table of batches: which are wanted, in progress or ready, and which waiters each has.
//
// A record is a batch in the table. It begins as wanted: a reader opened it, or the prefetcher
// expects it. begin() makes it one that is being assembled, submitted() one whose chunks are with
// the scheduler, complete() one that is ready. A record whose memory was refused waits in the queue
// for memory and then begins again. A ready batch that was opened stays for other readers of its
// stream until enough later ones were opened; a batch that nobody opened stays until its memory is
// needed or the stream has gone on without it.
//
// Time is the number of batches opened: now(). A prefetched record is due at a time.
//
// The table calls nothing but Waiters::add() with its lock held. A method returns the follow-up
// work: an assembly whose new urgency or end the scheduler must learn, a record that must be
// assembled.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/base/budget.h"
#include "engine/pipeline/batch.h"
#include "engine/pipeline/batch_request.h"
#include "engine/pipeline/chunks/assembly.h"
#include "engine/pipeline/waits/waiters.h"
#include "engine/telemetry/counters.h"
#include "engine/view/samples/mask.h"

namespace batchfs {

/// Thread-safe.
class BatchTable {
 public:
  class Record;
  using RecordPtr = std::shared_ptr<Record>;

  /// `is_due`: will a reader ask for this batch soon? All outlive the table.
  BatchTable(Waiters& waiters, Counters& counters, std::function<bool(const BatchRequest&)> is_due)
      : waiters_(waiters), counters_(counters), is_due_(std::move(is_due)) {}

  /// Records that were dropped. Their memory is freed with this, outside of the lock.
  struct Dropped {
    std::vector<RecordPtr> records;
    std::vector<std::shared_ptr<Assembly>> cancelled;  // the scheduler must be notified
  };

  struct Opened {
    bool refused = false;  // the table has stopped
    bool first = false;    // the first open of this batch; else another file or reader of it
    std::shared_ptr<const Batch> ready;  // or else:
    WaiterId waiter = 0;
    RecordPtr assemble;                      // must be assembled
    std::shared_ptr<Assembly> reprioritize;  // more urgent now
    Dropped dropped;
  };
  /// A reader opens a batch. Counts it when it is the first, before the reader can have it. Takes
  /// `waiter` over unless the batch is ready or the open is refused.
  Opened open(const BatchRequest& request, Waiter& waiter);

  struct Expected {
    RecordPtr assemble;  // must be assembled: it is new, or not begun and now to begin soon
    RecordPtr start;     // was expected as not started, and must start now
  };
  /// The prefetcher expects the batch to be opened `distance` batches from now. `started`: chunks
  /// are fetched for it; else it takes its parts of chunks that are fetched for others. `soon`: it
  /// shall begin before chunks that readers wait for are decoded.
  Expected expect(const BatchRequest& request, std::int64_t distance, bool started, bool soon);
  /// Drops a record that was expected, unless a reader has opened it.
  void drop_expected(const RecordPtr& record);
  /// The assembly of a record that must be started. Nothing when there is none yet or any more;
  /// then the record counts as started.
  std::shared_ptr<Assembly> assembly_to_start(const RecordPtr& record);
  void start(const RecordPtr& record, Assembly& assembly);

  struct Begun {
    std::shared_ptr<Assembly> assembly;  // null: the table has stopped
    bool waited = false;                 // a reader waits for it
    Budget::Reservation granted;         // memory from the queue
  };
  /// Begins to assemble the record. Nothing when it was dropped, has begun, is queued or is ready.
  std::optional<Begun> begin(const RecordPtr& record);
  /// The assembly is with the scheduler. True when the scheduler must be notified of a change since
  /// begin().
  bool submitted(const RecordPtr& record, Assembly& assembly, bool waited);
  /// It waits for memory from now on.
  void queue(const RecordPtr& record);
  /// Its memory from the queue: it must be assembled again.
  void grant(const RecordPtr& record, Budget::Reservation memory);
  /// Drops a queued record that has no waiters. False when it has some.
  bool drop_queued(const RecordPtr& record);

  enum class GivenUp { assemble_again, dropped, dropped_started };
  /// No memory is left for this prefetch now. A record that a reader opened meanwhile must be
  /// assembled again.
  GivenUp give_up(const RecordPtr& record);

  struct Completed {
    bool assemble_again = false;  // a reader came while its chunks were being dropped
    std::vector<WaiterId> waiters;
    std::uint64_t began = 0;  // nanoseconds, Trace::now(); 0: never
  };
  /// `batch`: null when it failed; `interrupted`: because nobody wanted it.
  Completed complete(const RecordPtr& record, std::shared_ptr<Batch> batch, bool interrupted);

  /// Drops the oldest opened batch that is ready, except batches of several files whose reader may
  /// still open the others: the batches after it in its stream are not opened yet. False when there
  /// is none.
  bool drop_opened(Dropped& dropped);
  /// Drops also such a batch.
  bool drop_any_opened(Dropped& dropped);
  /// Drops the least urgent batch that nobody has opened: one that is ready, or that takes only
  /// chunks fetched for others.
  bool drop_least_urgent(Dropped& dropped);
  /// Drops batches that nobody opened long after they were due, and those that nobody will open
  /// according to `is_left_out`.
  Dropped drop_overdue(const std::function<bool(const BatchRequest&)>& is_left_out);
  /// Drops all that no reader waits for.
  Dropped drop_all();
  /// Like drop_all(), for the views that `chosen` accepts.
  Dropped drop_views(const std::function<bool(const View&)>& chosen);

  /// Is the batch in the table? After stop() all count.
  bool is_made(const BatchKey& key) const;
  /// Is a batch with the scheduler?
  bool is_at_work() const;
  std::uint64_t now() const;
  Urgency urgency(const Record& record) const;
  /// The time until which cached chunks are worth more than this record, which nobody waits for
  /// yet.
  std::uint64_t keep_until(const Record& record) const {
    return static_cast<std::uint64_t>(urgency(record));
  }
  /// How many batches will be opened before this one, which nobody waits for yet, and it.
  std::int64_t distance(const Record& record) const;
  std::size_t waiters(const Record& record) const;

  /// From now on opens are refused and nothing begins.
  void stop();

 private:
  using Records = std::map<BatchKey, RecordPtr>;
  void leave(const RecordPtr& record, WaiterId waiter);
  void trim_opened(Dropped& dropped);
  bool is_being_read(const Record& record) const;
  std::uint64_t drop_oldest(Dropped& dropped, bool being_read_too);
  void drop(const RecordPtr& record, Dropped& dropped);
  void forget(const RecordPtr& record);

  Waiters& waiters_;
  Counters& counters_;
  const std::function<bool(const BatchRequest&)> is_due_;
  /// Guards the members below and all records. Lock order: before Waiters' and Ticker's; the
  /// engine's first.
  mutable std::mutex mutex_;
  Records records_;
  std::deque<BatchKey> opened_;  // oldest first: the first to go
  std::uint64_t now_ = 0;
  bool stopping_ = false;
};

class BatchTable::Record {
 public:
  explicit Record(BatchRequest of) : request(std::move(of)) {}
  const BatchRequest request;

 private:
  friend class BatchTable;
  std::shared_ptr<Batch> batch;        // set when ready
  std::shared_ptr<Assembly> assembly;  // set while it is being assembled
  bool submitted = false;
  std::vector<WaiterId> waiters;
  /// kReaderWaits, or when it is due: kPrefetch plus the value that now() will have.
  Urgency urgency = kReaderWaits;
  bool started = true;
  bool soon = false;
  std::size_t opens = 0;  // of its files
  std::uint64_t began = 0;
  Budget::Reservation granted;
  bool queued = false;
};

}  // namespace batchfs
