#pragma once
// The mount: FUSE requests to calls of Files, and nothing else.
//
// Every file is served in one of three ways, the same for as long as any handle on it is open:
//   passthrough  the kernel reads the batch's memory file itself (Linux 6.9, CAP_SYS_ADMIN)
//   direct       reads come here; mapping works where the kernel has FUSE_DIRECT_IO_ALLOW_MMAP
//   kernel       small texts, kept in the page cache
// No FUSE thread waits for data: replies are sent from the callback that completes a request.
//
// A session can outlive the process that serves it, where another holds its descriptor and its
// state: the next daemon takes it over, and the kernel sends it again what the first had read and
// not answered (Linux 6.9).

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
    std::string source;       // what /proc/mounts shows as the device
    bool passthrough = true;  // use it where the kernel allows
    bool allow_other = false;
    SessionState* state = nullptr;  // outlives this; null: the session ends with this process
    int taken_over =
        -1;  // the descriptor of a live session that `state` is of, to be owned; -1: mount
  };

  /// Mounts, or takes over. Throws with the reason when that fails.
  FuseSession(Options options, Files& files, Log& log);
  /// Unmounts if still mounted.
  ~FuseSession();
  FuseSession(const FuseSession&) = delete;

  /// Serves requests until the mount is unmounted or SIGINT, SIGTERM or SIGHUP comes. `ready` is
  /// called when the kernel and this process have agreed on the protocol; `ending` when no more
  /// requests come: every pending request must have been answered when that returns. Throws
  /// when libfuse can serve no longer (for want of memory or threads). If that is after `ready` and
  /// another daemon can take the session over, `ending` was not called and nothing was answered:
  /// the caller must end the process at once, without destroying this, and the next daemon gets the
  /// requests that are under way.
  void run(std::function<void()> ready, const std::function<void()>& ending);

  /// Is passthrough in use? Known when ready.
  bool passthrough() const;
  /// Could another daemon take the session over? Known when ready.
  bool can_be_taken_over() const;
  /// Has the kernel give up a name. From any thread that answers no requests; while run() runs.
  void forget_name(Ino parent, const std::string& name);
  /// Of /dev/fuse: the session lives as long as any process holds it.
  int descriptor() const;

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace batchfs
