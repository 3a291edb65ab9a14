#pragma once
// The memory that receives a request of the kernel.

#include <cstddef>
#include <span>

namespace batchfs {

/// Writes to each page of `buffer` that a request may fill, so that the kernel finds it mapped.
/// Call it before each read of /dev/fuse.
///
/// When a thread is killed in that read, the kernel may still hand it a request. It then cannot map
/// pages any more, and answers the request with EIO itself (fuse_dev_do_read(), Linux 6.18). A
/// request that it could copy waits for the next daemon.
void map_request_buffer(std::span<std::byte> buffer);

}  // namespace batchfs
