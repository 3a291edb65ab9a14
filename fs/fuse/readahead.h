#pragma once
// How far ahead the kernel reads files that are mapped, which also bounds its requests. FUSE's
// default is 128 KiB; only root can raise it, through sysfs
// (Documentation/ABI/testing/sysfs-class-bdi).

#include <cstdint>
#include <string>

namespace batchfs {

/// Raises the read-ahead of the mount at `mountpoint` to `bytes`, unless it is as large already.
/// Returns the size in force, in bytes; 0 when it cannot be read. Sends no request to the mount.
std::uint64_t raise_readahead(const std::string& mountpoint, std::uint64_t bytes);

}  // namespace batchfs
