#pragma once
// Entries of the kernel's dentry cache, which outlive their timeouts.

#include <string_view>

#include "fs/ino.h"

namespace batchfs {

/// Invalidates `name` in the directory `parent`, and unused entries below it. The kernel forgets an
/// inode in use when its last user closes it. False when the kernel does not know the name. Waits
/// for lookups in the directory: never call it from a thread that answers requests.
bool forget_name(int fuse, Ino parent, std::string_view name);

/// Has the kernel look `name` up again at its next use. Its users keep it, so that
/// getcwd(2) and the links in /proc work on. Returns and waits like forget_name(). Kernels before
/// 6.2 forget the name.
bool expire_name(int fuse, Ino parent, std::string_view name);

}  // namespace batchfs
