#pragma once
// A process that works for the reader of a pipe: it ends with it, for example after Ctrl-C.

#include <thread>

#include "engine/base/descriptor.h"

namespace batchfs {

/// Ends this process, with status 1, when the reader of `fd` is gone: the other end of a pipe or of
/// a connected socket has been closed. Other kinds of files have no such end.
class ReaderWatch {
 public:
  /// Precondition: `fd` outlives the watch. Throws io when the system lacks descriptors.
  explicit ReaderWatch(int fd);
  /// The process lives on without its reader.
  ~ReaderWatch();
  ReaderWatch(const ReaderWatch&) = delete;

 private:
  const Descriptor stop_;
  std::thread thread_;
};

}  // namespace batchfs
