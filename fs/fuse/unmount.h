#pragma once
// Ending a mount by its path, as root or as the ordinary user who made it.

#include <string>

namespace batchfs {

/// Unmounts `path` without looking into it. `lazy`: also while programs use it;
/// the name goes now, the file system when they are done. Throws access_denied or io with what to
/// do.
void unmount(const std::string& path, bool lazy);

/// Has the daemon of the mount at `path` died, so that every call fails with ENOTCONN? A mount that
/// gives no answer for a second has not: its daemon hangs, or is being started again.
bool is_dead_mount(const std::string& path);

/// Has the kernel ended the session of this /dev/fuse descriptor, because it was unmounted or
/// aborted?
bool has_session_ended(int fuse);

}  // namespace batchfs
