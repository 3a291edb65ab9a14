#pragma once
// The kernel keeps names, and with them the inodes that they lead to, for as long as it was told
// and beyond. This has it give one up.

#include <string_view>

#include "fs/ino.h"

namespace batchfs {

/// Has the kernel drop `name` of the directory `parent`, and what lies below it and nobody uses. An
/// inode that is in use is forgotten when that ends. False when the kernel does not know the name.
/// Waits for lookups in the directory: not for threads that answer requests.
bool forget_name(int fuse, Ino parent, std::string_view name);

}  // namespace batchfs
