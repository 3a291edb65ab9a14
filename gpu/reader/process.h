#pragma once
// Which process this is, for what a child after fork() must not touch.

#include <sys/types.h>

namespace batchfs::reader {

/// As getpid(), but no system call: those take microseconds each after a pause, and every batch
/// asks.
pid_t this_process();

}  // namespace batchfs::reader
