#pragma once
// Makes a session of libfuse: mounts a directory, or continues a session that another process has
// mounted.

#include <string>

#include "fs/fuse/fuse_log.h"

struct fuse_session;
struct fuse_lowlevel_ops;

namespace batchfs {

struct NewSession {
  std::string mountpoint;
  std::string source;  // the device in /proc/mounts
  bool allow_other = false;
  int taken_over = -1;  // the descriptor of a live session; -1: mount
};

/// `-o` of the mount.
std::string fuse_mount_options(const std::string& source, bool allow_other);

/// The session, for fuse_session_destroy(). Its requests go to `operations` with `user`. Throws
/// access_denied with the reason when the kernel or fusermount3 refuses the mount.
fuse_session* new_fuse_session(const NewSession& options, const fuse_lowlevel_ops& operations,
                               void* user, const FuseLog& messages);

}  // namespace batchfs
