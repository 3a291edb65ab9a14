#pragma once
// Reads of open files, from the kernel's request to its answer.
//
// A read is answered by the file with its bytes, or by a signal for the waiting process. A read
// through a handle of an earlier daemon waits until its file is open again.
//
//   const RequestToken token =
//       reads.begin([request](std::span<const OpenFile::Bytes> bytes, int error) { ... });
//   (from now on interrupt(token) may come)
//   reads.start(token, handle, ino, offset, size);

#include <cstdint>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "fs/files.h"
#include "fs/open_table.h"
#include "fs/pending_requests.h"

namespace batchfs {

/// Thread-safe.
class Reads {
 public:
  /// Called once, from any thread: the bytes, in runs that are valid during the call, or an errno
  /// that is not 0.
  using Answer = std::function<void(std::span<const OpenFile::Bytes>, int error)>;

  /// They outlive it.
  Reads(Files& files, OpenTable& open_files) : files_(files), open_files_(open_files) {}

  /// Notes a read. It is not answered before it is started.
  RequestToken begin(Answer answer) { return requests_.begin(std::move(answer)); }
  void start(RequestToken token, std::uint64_t handle, Ino ino, std::uint64_t offset,
             std::uint64_t size);
  /// A signal ends the wait: EINTR, unless the read has its answer.
  void interrupt(RequestToken token) { requests_.interrupt(token); }

 private:
  /// A read that waits for its file to be opened again.
  struct Delayed {
    RequestToken token;
    std::uint64_t offset, size;
  };

  void read(RequestToken token, const std::shared_ptr<OpenFile>& file, std::uint64_t offset,
            std::uint64_t size);
  void reopen(std::uint64_t handle, Ino ino, std::uint64_t offset);
  void reopened(std::uint64_t handle, Ino ino, std::shared_ptr<OpenFile> file,
                std::exception_ptr error);
  void answer(RequestToken token, std::span<const OpenFile::Bytes> bytes, int error);

  Files& files_;
  OpenTable& open_files_;
  PendingRequests<Answer> requests_;
  /// Guards the member below. No other lock is taken with it held.
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::vector<Delayed>> reopening_;  // by handle
};

}  // namespace batchfs
