#pragma once
// The mount: FUSE requests to FileSystem calls, and nothing else.
//
// Every file is served in one of three ways, the same for as long as any handle on it is open:
//   passthrough  the kernel reads the batch's memory file itself (Linux 6.9, CAP_SYS_ADMIN)
//   direct       reads come here; mapping works where the kernel has FUSE_DIRECT_IO_ALLOW_MMAP
//   kernel       small texts, kept in the page cache
// No FUSE thread waits for data: replies are sent from the callback that completes a request.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fs/file_system.h"

namespace batchfs {

class FuseSession {
 public:
  struct Options {
    std::string mountpoint;
    std::string source;        // what /proc/mounts shows as the device
    bool passthrough = true;   // use it where the kernel allows
    bool allow_other = false;
  };

  /// Mounts. Throws with the reason when that fails.
  FuseSession(Options options, FileSystem& files, Log& log);
  /// Unmounts if still mounted.
  ~FuseSession();
  FuseSession(const FuseSession&) = delete;

  /// Serves requests until the mount is unmounted or SIGINT, SIGTERM or SIGHUP comes. `ready` is called
  /// when the kernel and this process have agreed on the protocol; `ending` when no more requests come: whoever
  /// still waits for an answer must have got it when that returns.
  void run(std::function<void()> ready, const std::function<void()>& ending);

  /// Is passthrough in use? Known when ready.
  bool passthrough() const;

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace batchfs
