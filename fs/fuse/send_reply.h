#pragma once
// Answers to the kernel's requests.

#include <sys/types.h>
#include <sys/uio.h>

#include "engine/base/log.h"

namespace batchfs {

/// Writes an answer, whose first part begins with a fuse_abi::OutHeader, to the session. If the
/// kernel refuses it, answers with EIO, since the request's reader would wait forever; if that
/// fails, too, this process ends, and the next daemon gets the requests. Returns and sets errno
/// like writev(2). Thread-safe.
ssize_t send_reply(int fuse, const iovec* parts, int count, Log& log);

}  // namespace batchfs
