#pragma once
// Sources of a reader's batches: the hand-off's socket, or the files of a mount.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "gpu/handoff/protocol.h"
#include "gpu/reader/batch.h"
#include "gpu/reader/labels.h"
#include "gpu/reader/schema.h"

namespace batchfs::reader {

/// Called now and then while a call waits; true ends the call with Error{interrupted}. May be
/// empty.
using Interrupted = std::function<bool()>;

/// The batches first, first + step, ... (global numbers), `count` of them.
struct Series {
  std::int64_t epoch = 0, first = 0, step = 1, count = 0;
};

/// Not thread-safe; its batches are independent of it.
class Source {
 public:
  virtual ~Source() = default;
  virtual const std::shared_ptr<const Schema>& schema() const = 0;
  /// Null if an older server does not send them.
  virtual const std::shared_ptr<const Coordinates>& coordinates() const = 0;
  /// The reading of the store of the batches; no session: unknown.
  virtual handoff::ReadingRecord reading() const { return {}; }
  /// "client" or "server" (device memory), "shm" or "files".
  virtual const char* mode() const = 0;
  /// Why batches come in host memory although the mode is another; else empty.
  virtual std::string why_copied() const { return {}; }

  /// From now on next() returns this series. `ahead`: number of batches prefetched beyond those
  /// that the reader holds.
  virtual void start(const Series& series, std::uint32_t ahead) = 0;
  /// The next batch; null after the last. A batch that fails throws, and the next call continues
  /// after it. Throws Lost if no more will come.
  virtual std::shared_ptr<Batch> next(const Interrupted& interrupted) = 0;
  virtual std::shared_ptr<Batch> get(std::int64_t epoch, std::int64_t batch,
                                     const Interrupted& interrupted) = 0;
};

/// The process that made the batches is gone, or violates the protocol.
struct Lost {
  std::string why;
  bool cannot_map = false;  // it is alive, but its device memory cannot be used here
  bool closed = false;      // the other end has closed the connection
};

}  // namespace batchfs::reader
