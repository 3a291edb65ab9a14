#pragma once
// Opens of files, from the kernel's request to its answer. That of a batch waits until the batch is complete, unless a
// signal for the process that waits ends it before.
//
//   const Opens::Token token = opens.begin([request](const OpenTable::Opening* opening, int error) { ... });
//   (from here on interrupt(token) may come)
//   opens.start(token, ino, passthrough);

#include <cstdint>
#include <functional>
#include <mutex>
#include <unordered_map>

#include "fs/file_system.h"
#include "fs/open_table.h"

namespace batchfs {

/// Thread-safe.
class Opens {
 public:
  using Token = std::uint64_t;
  /// Called once, from any thread: the handle, or an errno.
  using Answer = std::function<void(const OpenTable::Opening*, int error)>;

  /// They outlive it.
  Opens(FileSystem& files, OpenTable& open_files) : files_(files), open_files_(open_files) {}

  /// Notes an open. It is not answered before it is started.
  Token begin(Answer answer);
  /// `passthrough`: the kernel reads the file itself if it can.
  void start(Token token, Ino ino, bool passthrough);
  /// Whoever waits does not want to any more: EINTR, unless it has its answer.
  void interrupt(Token token);

 private:
  struct Open {
    Answer answer;
    Engine::WaiterId waiter = 0;
    bool interrupted = false;
  };
  Answer take(Token token);

  FileSystem& files_;
  OpenTable& open_files_;
  std::mutex mutex_;  // guards what follows; never held while calling out
  std::unordered_map<Token, Open> opens_;
  Token last_ = 0;
};

}  // namespace batchfs
