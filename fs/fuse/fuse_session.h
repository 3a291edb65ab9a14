#pragma once
// The mount: translates FUSE requests to calls of Files, and does nothing else.
//
// Every file is served in one of three ways, the same for as long as any handle on it is open:
//   passthrough  the kernel reads the batch's memory file itself (Linux 6.9, CAP_SYS_ADMIN)
//   direct       reads come here; mapping works where the kernel has FUSE_DIRECT_IO_ALLOW_MMAP
//   kernel       small texts, kept in the page cache
// No FUSE thread waits for data: replies are sent from the callback that completes a request.
//
// A session can outlive the process that serves it if another process holds its descriptor and its
// state. The next daemon takes it over, and the kernel resends the requests that the first had read
// but not answered (Linux 6.9).

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fs/files.h"
#include "fs/session_state.h"

namespace batchfs {

class FuseSession {
 public:
  struct Options {
    std::string mountpoint;
    std::string source;       // the device in /proc/mounts
    bool passthrough = true;  // use it where the kernel allows
    bool allow_other = false;
    SessionState* state = nullptr;  // outlives this; null: the session ends with this process
    int taken_over =
        -1;  // the descriptor of a live session that `state` is of, to be owned; -1: mount
  };

  /// Mounts, or takes over. Throws with the reason on failure.
  FuseSession(Options options, Files& files, Log& log);
  /// Unmounts if still mounted.
  ~FuseSession();
  FuseSession(const FuseSession&) = delete;

  /// Serves requests until the mount is unmounted or SIGINT, SIGTERM or SIGHUP comes. Calls `ready`
  /// when the kernel and this process have agreed on the protocol, and `ending` when no more
  /// requests come: every pending request must have been answered when `ending` returns. Throws if
  /// libfuse can no longer serve (no memory or threads). If that happens after `ready` and another
  /// daemon can take the session over, `ending` was not called and nothing was answered: the caller
  /// must end the process at once, without destroying this, and the next daemon gets the requests
  /// in flight.
  void run(std::function<void()> ready, const std::function<void()>& ending);

  /// Is passthrough in use? Known when ready.
  bool passthrough() const;
  /// Could another daemon take the session over? Known when ready.
  bool can_be_taken_over() const;
  /// Makes the kernel forget a name, or look it up again at its next use. Call from any thread that
  /// answers no requests, while run() runs.
  void forget_name(Ino parent, const std::string& name);
  void expire_name(Ino parent, const std::string& name);
  /// Descriptor of /dev/fuse. The session lives as long as any process holds it.
  int descriptor() const;

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace batchfs
