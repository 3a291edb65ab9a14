#pragma once
// Unmounts a path, as root or as the ordinary user who made the mount.

#include <string>

namespace batchfs {

/// Unmounts `path` without looking into it. `lazy`: also while programs use it; the name is removed
/// now, the file system when they are done. Throws access_denied or io, with advice.
void unmount(const std::string& path, bool lazy);

/// Has the daemon of the mount at `path` died, so that every call fails with ENOTCONN? A mount that
/// does not answer for a second is not dead: its daemon hangs, or is being restarted.
bool is_dead_mount(const std::string& path);

/// Has the kernel ended the session of this /dev/fuse descriptor, because it was unmounted or
/// aborted?
bool has_session_ended(int fuse);

}  // namespace batchfs
