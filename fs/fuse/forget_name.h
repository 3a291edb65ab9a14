#pragma once
// Invalidates an entry of the kernel's dentry cache, which may outlive its timeout.

#include <string_view>

#include "fs/ino.h"

namespace batchfs {

/// Invalidates `name` in the directory `parent`, and unused entries below it. The kernel forgets an
/// inode in use when its last user closes it. False when the kernel does not know the name. Waits
/// for lookups in the directory: never call it from a thread that answers requests.
bool forget_name(int fuse, Ino parent, std::string_view name);

}  // namespace batchfs
