#pragma once
// Streams, and which of their batches to have ready.
//
// A stream is a reader's way through a view: a (view, format, rank, world). Its batches are
// numbered over all epochs, so the end of an epoch is not a seam. Neither is an end that a reader
// makes early each time, as training loops with a limit of batches do. The prefetcher learns where
// a stream is from the batches that are opened; its prefetch, the number of batches kept ready
// ahead of it, grows when the reader had to wait, shrinks when memory runs out, and is 0 for a
// stream that jumps about. Source of the rule: the prefetcher of mountpoint-s3 (grow on stall,
// shrink on a failed reservation).

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "engine/pipeline/batch_request.h"

namespace batchfs {

/// Thread-safe. Knows nothing of memory or tasks: it only decides which batches should be ready.
class Prefetcher {
 public:
  static constexpr std::int64_t kMaxPrefetch = 64;

  /// A reader opened this batch; `stalled`: it was not ready. Returns true for a new stream.
  bool opened(const BatchRequest& request, bool stalled);

  /// The batches of this stream that should be ready or in progress now, soonest first: at most as
  /// many batches of `batch_bytes` as `room` bytes hold.
  std::vector<BatchRequest> due(const BatchRequest& request, std::uint64_t batch_bytes,
                                std::uint64_t room);

  /// How many streams are being read, at least one: they share the memory. A reader that stopped
  /// counts until the others have opened kForgotten batches.
  std::int64_t streams_read() const;
  static constexpr std::uint64_t kForgotten = 64;

  /// A batch of this stream could not be begun for lack of memory.
  void on_memory_pressure(const BatchRequest& request);
  /// Nor this one, which would not have kept the reader from waiting: none is made from it on.
  void on_no_spare_memory(const BatchRequest& request);

  /// Batches that are made ahead to begin with, and at least.
  static constexpr std::int64_t kFirstPrefetch = 2;

  struct Ahead {
    std::int64_t distance;  // in batches from the reader
    BatchRequest request;
  };
  /// The batches after the prefetched ones, up to `count`, for looking ahead at chunk uses.
  std::vector<Ahead> beyond(const BatchRequest& request, std::int64_t count) const;

  /// Is this batch ahead of its stream's reader?
  bool is_ahead(const BatchRequest& request) const;
  /// Does it lie after the end that its stream's reader makes of each epoch?
  bool leaves_out(const BatchRequest& request) const;
  /// Is it one of the prefetched batches?
  bool wanted(const BatchRequest& request) const;

  /// Forgets the streams of the views that `chosen` holds of.
  void forget(const std::function<bool(const View&)>& chosen);

  struct StreamState {
    std::string view, format;
    std::int64_t rank, world, epoch, batch, prefetch;
  };
  std::vector<StreamState> streams() const;

 private:
  struct Stream {
    // batches: all, or the number that the reader took of the last epoch
    std::int64_t per_epoch = 0;
    std::int64_t position = -1;  // the furthest batch opened in order, counted over epochs
    std::int64_t prefetch = 0;
    std::uint64_t last_used = 0;
    std::weak_ptr<const View> view{};  // that of the key, for as long as it lives
  };
  using Key = std::tuple<const View*, const BatchFormat*, std::int64_t, std::int64_t>;
  static Key key_of(const BatchRequest& request);
  /// How many batches on from the stream's position; 0 or less for those that are not ahead of it.
  static std::int64_t distance(const Stream& stream, const BatchRequest& request);
  /// The request `distance` batches on from the stream's position; batch -1 when the epochs are
  /// over.
  static BatchRequest ahead(const Stream& stream, const BatchRequest& request,
                            std::int64_t distance);

  /// Guards the members below. No other lock is taken with it held.
  mutable std::mutex mutex_;
  std::map<Key, Stream> streams_;
  std::uint64_t clock_ = 0;
};

}  // namespace batchfs
