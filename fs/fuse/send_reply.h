#pragma once
// Answers to the kernel's requests.

#include <sys/types.h>
#include <sys/uio.h>

#include "engine/base/log.h"

namespace batchfs {

/// Writes an answer, whose first part begins with a fuse_abi::OutHeader, to the session. One that
/// the kernel does not take is answered with EIO, since its reader would wait for ever; where that
/// fails too this process ends, and the next daemon gets the requests. Returns and sets errno as
/// writev(2). Thread-safe.
ssize_t send_reply(int fuse, const iovec* parts, int count, Log& log);

}  // namespace batchfs
