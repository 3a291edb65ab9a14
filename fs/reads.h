#pragma once
// Reads of open files, from the kernel's request to its answer.
//
// Two may come to answer a read: the file with its bytes, or a signal for the process that waits. Who comes first does,
// and the other finds nothing left. A read through a handle that an earlier daemon of the session gave waits until its
// file is open again.
//
//   const Reads::Token token = reads.begin([request](std::span<const std::byte> bytes, int error) { ... });
//   (from here on interrupt(token) may come)
//   reads.start(token, handle, ino, offset, size);

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "fs/file_system.h"
#include "fs/open_table.h"

namespace batchfs {

/// Thread-safe.
class Reads {
 public:
  using Token = std::uint64_t;
  /// Called once, from any thread: the bytes, which are valid during the call, or an errno that is not 0.
  using Answer = std::function<void(std::span<const std::byte>, int error)>;

  /// They outlive it.
  Reads(FileSystem& files, OpenTable& open_files) : files_(files), open_files_(open_files) {}

  /// Notes a read. It is not answered before it is started: a signal may be told of while libfuse still sets up the
  /// request.
  Token begin(Answer answer);
  void start(Token token, std::uint64_t handle, Ino ino, std::uint64_t offset, std::uint64_t size);
  /// The reader does not want to wait any more: EINTR, unless it has its answer.
  void interrupt(Token token);

 private:
  struct Read {
    Answer answer;
    bool started = false, interrupted = false;
  };
  /// A read that waits for its file to be opened again.
  struct Delayed {
    Token token;
    std::uint64_t offset, size;
  };

  void read(Token token, const std::shared_ptr<OpenFile>& file, std::uint64_t offset, std::uint64_t size);
  void reopen(std::uint64_t handle, Ino ino, std::uint64_t offset);
  void reopened(std::uint64_t handle, Ino ino, std::shared_ptr<OpenFile> file, std::exception_ptr error);
  void answer(Token token, std::span<const std::byte> bytes, int error);

  FileSystem& files_;
  OpenTable& open_files_;
  std::atomic<Token> last_{0};
  std::mutex mutex_;  // guards what follows; never held while calling out
  std::unordered_map<Token, Read> reads_;
  std::unordered_map<std::uint64_t, std::vector<Delayed>> reopening_;  // by handle
};

}  // namespace batchfs
