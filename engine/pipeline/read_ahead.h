#pragma once
// Read-ahead: work done before readers ask.
//
// A stream is a reader's way through a view (prefetcher.h). When it opens a batch, the batches that
// the prefetch reaches are expected: assembled and filled. Later batches may join chunks that are
// being fetched or decoded, where batches share chunks that memory cannot hold. The chunks of
// batches after them are only announced to the cache (look_ahead.h). All of it is a guess: it takes
// only memory that nobody waits for, and its errors are left to the reader that needs the batch.

#include <atomic>
#include <cstdint>
#include <functional>

#include "engine/pipeline/batches/batch_assembler.h"

namespace batchfs {

/// Thread-safe; without a lock of its own.
class ReadAhead {
 public:
  ReadAhead(BatchAssembler::Environment environment, BatchAssembler& assembler)
      : with_(environment), assembler_(assembler) {}

  /// A reader opened the batch; `stalled`: it was not ready. Noted at once, so that later prefetch
  /// starts ahead of the reader's position by then.
  void learn(const BatchRequest& request, bool stalled);
  /// Has workers make the batches that come after `request` in its stream.
  void make_next(const BatchRequest& request);

 private:
  void post(Urgency urgency, std::function<void()> guess);
  void prefetch(const BatchRequest& request);
  BatchTable::RecordPtr expect(const BatchRequest& request, std::int64_t distance, bool started,
                               std::int64_t& soon);
  bool start(const BatchTable::RecordPtr& record);
  void announce_uses(const BatchRequest& request);

  const BatchAssembler::Environment with_;
  BatchAssembler& assembler_;
  std::atomic<std::uint64_t> announcements_{0};
  std::atomic<bool> looks_on_{false};  // announce_uses() will be called again without an open
};

}  // namespace batchfs
