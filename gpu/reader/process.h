#pragma once
// Identity of this process, to detect what a child after fork() must not touch.

#include <sys/types.h>

namespace batchfs::reader {

/// Like getpid(), but without a system call: that takes microseconds after a pause, and every batch
/// asks.
pid_t this_process();

}  // namespace batchfs::reader
