#pragma once
// mount.batchfs: the program by which mount(8) and fstab(5) mount, see mount.batchfs(8).
//
// It is batchfs under another name. mount(8) calls it as
//   mount.batchfs STORE DIR [-sfnv] [-N NAMESPACE] [-o OPTIONS] [-t TYPE]
// passes more options than a user typed, and has its own exit codes.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace batchfs {

/// Was the program called by this name? Also as mount.fuse.batchfs, for `mount -t fuse.batchfs`.
bool is_mount_helper(std::string_view program);

/// Handles a call by mount(8). `batchfs` runs `batchfs ARGUMENTS` and returns its exit code.
/// Returns mount(8)'s: 0, 1 for wrong usage, 32 when the mount failed. Throws UsageError.
int run_mount_helper(std::vector<std::string> arguments,
                     const std::function<int(std::vector<std::string> arguments)>& batchfs);

}  // namespace batchfs
