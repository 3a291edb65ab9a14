#pragma once
// Where a reader's batches come from: the hand-off's socket, or the files of a mount.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "gpu/handoff/protocol.h"
#include "gpu/reader/batch.h"
#include "gpu/reader/labels.h"
#include "gpu/reader/schema.h"

namespace batchfs::reader {

/// Asked now and then while a call waits; true ends the call with Error{interrupted}. May be empty.
using Interrupted = std::function<bool()>;

/// The batches first, first + step, ... (global numbers), `count` of them.
struct Series {
  std::int64_t epoch = 0, first = 0, step = 1, count = 0;
};

/// Not thread-safe; the batches it gives are independent of it.
class Source {
 public:
  virtual ~Source() = default;
  virtual const std::shared_ptr<const Schema>& schema() const = 0;
  /// Null where an older server does not send them.
  virtual const std::shared_ptr<const Coordinates>& coordinates() const = 0;
  /// Which reading of the store the batches are of; no session: not known.
  virtual handoff::ReadingRecord reading() const { return {}; }
  /// "client" or "server" (device memory), "shm" or "files".
  virtual const char* mode() const = 0;
  /// Why batches come in host memory although the mode is another; else empty.
  virtual std::string why_copied() const { return {}; }

  /// From here on next() gives this series. `ahead`: so many batches more than the reader holds are
  /// made ready.
  virtual void start(const Series& series, std::uint32_t ahead) = 0;
  /// Null behind the last. A batch that fails throws, and the next call continues behind it. Throws
  /// Lost when there will be no more.
  virtual std::shared_ptr<Batch> next(const Interrupted& interrupted) = 0;
  virtual std::shared_ptr<Batch> get(std::int64_t epoch, std::int64_t batch,
                                     const Interrupted& interrupted) = 0;
};

/// The process that made the batches is gone, or speaks nonsense.
struct Lost {
  std::string why;
  bool cannot_map = false;  // it is there, but its device memory cannot be used here
};

}  // namespace batchfs::reader
