#pragma once
// A daemon that reports: the command returns when the daemon is ready, or fails with its error.

#include <functional>

namespace batchfs {

/// Runs `serve` in a process of its own, which outlives this one. Returns when it has called `ready`;
/// throws the Error that it ended with before that. To be called before any thread is started.
void run_in_background(const std::function<void(const std::function<void()>& ready)>& serve);

}  // namespace batchfs
