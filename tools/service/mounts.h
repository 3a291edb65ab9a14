#pragma once
// The batchfs mounts of this machine, as the kernel lists them.

#include <optional>
#include <string>

namespace batchfs {

/// The real path of a directory. Works for one whose daemon is gone, too, where only its parent can
/// be resolved.
std::string mount_path(const std::string& directory);

/// The type of the file system mounted at exactly this path ("fuse.batchfs"); nullopt when nothing
/// is. Source: proc(5), /proc/self/mountinfo.
std::optional<std::string> mounted_type(const std::string& path);

/// The number of the device mounted at exactly this path ("0:53"), which no other mount of this
/// machine has; nullopt when nothing is.
std::optional<std::string> mounted_device(const std::string& path);

/// Throws invalid_argument unless `directory` is a batchfs mount. Returns its real path.
std::string require_batchfs_mount(const std::string& directory);

/// Unmounts the remains at `directory` of a batchfs mount whose processes were all killed. Does not
/// touch anything else.
void end_dead_mount(const std::string& directory);

}  // namespace batchfs
