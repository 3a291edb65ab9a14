#pragma once
// Opens of files, from the kernel's request to its answer. That of a batch waits until the batch is
// complete, unless a signal for the process that waits ends it before.
//
//   const RequestToken token =
//       opens.begin([request](const OpenTable::Opening* opening, int error) { ... });
//   (from now on interrupt(token) may come)
//   opens.start(token, ino, passthrough);

#include <functional>

#include "fs/files.h"
#include "fs/open_table.h"
#include "fs/pending_requests.h"

namespace batchfs {

/// Thread-safe.
class Opens {
 public:
  /// Called once, from any thread: the handle, or an errno.
  using Answer = std::function<void(const OpenTable::Opening*, int error)>;

  /// They outlive it.
  Opens(Files& files, OpenTable& open_files) : files_(files), open_files_(open_files) {}

  /// Notes an open. It is not answered before it is started.
  RequestToken begin(Answer answer) { return requests_.begin(std::move(answer)); }
  /// `passthrough`: the kernel reads the file itself if it can.
  void start(RequestToken token, Ino ino, bool passthrough);
  /// A signal ends the wait: EINTR, unless the open has its answer.
  void interrupt(RequestToken token) { requests_.interrupt(token); }

 private:
  void answer(RequestToken token, const OpenTable::Opening* opening, int error);

  Files& files_;
  OpenTable& open_files_;
  PendingRequests<Answer> requests_;
};

}  // namespace batchfs
