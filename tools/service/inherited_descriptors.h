#pragma once
// Descriptors that a process got from the one that started it.
//
// A shell script may hold a lock (`flock 9`) or a pipe open in the command that it starts. A daemon
// that kept them would hold the lock, and keep the pipe's reader waiting, as long as the mount
// lives.

#include <string>
#include <vector>

namespace batchfs {

/// Closes every descriptor above standard error but `kept`, which may hold -1 and may repeat. To be
/// called before any thread is started.
void close_inherited_descriptors(std::vector<int> kept);

/// The descriptors that paths such as /dev/fd/63 name: a shell passes one for `--view <(...)`.
std::vector<int> descriptors_in(const std::vector<std::string>& paths);

}  // namespace batchfs
