#pragma once
// Deliveries to readers: counted for each stream, traced, and the first one announced.

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>

#include "engine/pipeline/batch.h"
#include "engine/pipeline/batch_request.h"
#include "engine/pipeline/batches/stream_statistics.h"
#include "engine/telemetry/trace.h"

namespace batchfs {

/// The batch as the trace shows it.
Trace::Batch traced(Trace& trace, const BatchRequest& request);
/// How something ended that failed with `error`, or did not when that is null.
Trace::End trace_end(const std::exception_ptr& error);

/// Thread-safe; without a lock of its own.
class Deliveries {
 public:
  /// `first`: called once, from any thread, when the first reader got a batch or values. May be
  /// empty.
  Deliveries(Trace& trace, std::function<void()> first) : trace_(trace), first_(std::move(first)) {}

  /// A reader that asked at `since` has its batch now, or null and an error.
  void record_delivery(const BatchRequest& request, const Batch* batch, std::uint64_t since,
                       const std::exception_ptr& error);
  /// A reader has got values of an array.
  void record_values() { note_first(); }

  const StreamStatistics& streams() const { return streams_; }

 private:
  void note_first();

  Trace& trace_;
  const std::function<void()> first_;
  std::atomic<bool> has_delivered_{false};
  StreamStatistics streams_;
};

}  // namespace batchfs
