#include "engine/pipeline/batches/deliveries.h"

#include "engine/base/error.h"

namespace batchfs {

Trace::Batch traced(Trace& trace, const BatchRequest& request) {
  return {.view = trace.name(request.view->name()),
          .rank = static_cast<std::int32_t>(request.rank),
          .world = static_cast<std::int32_t>(request.world),
          .epoch = request.epoch,
          .batch = request.global_batch()};
}

Trace::End trace_end(const std::exception_ptr& error) {
  if (!error) return Trace::End::done;
  return error_of(error).code() == ErrorCode::interrupted ? Trace::End::left : Trace::End::failed;
}

void Deliveries::record_delivery(const BatchRequest& request, const Batch* batch,
                                 std::uint64_t since, const std::exception_ptr& error) {
  const std::uint64_t bytes = batch == nullptr ? 0 : batch->bytes(), now = Trace::now();
  const Trace::End end = trace_end(error);
  if (end != Trace::End::left)
    streams_.record_delivery(request, bytes, now - since, end == Trace::End::failed, now);
  trace_.add({.kind = Trace::Kind::wait,
              .end = end,
              .begin = since,
              .bytes = bytes,
              .of = traced(trace_, request)});
  if (batch != nullptr) note_first();
}

void Deliveries::note_first() {
  if (!has_delivered_.exchange(true, std::memory_order_relaxed) && first_) first_();
}

}  // namespace batchfs
