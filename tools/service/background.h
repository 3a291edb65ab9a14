#pragma once
// A daemon that reports: the command returns when the daemon is ready, or fails with its error.

#include <functional>
#include <vector>

namespace batchfs {

/// Runs `serve` in a process of its own, which outlives this one. Returns when it has called
/// `ready`; throws the Error that it ended with before that. To be called before any thread is
/// started.
///
/// `split`, if any, is called in that process first. It may put a process of its own between the
/// two, and return in several daemons, one after the other: in the first of them with true. In its
/// own process it calls what it is given.
///
/// The process keeps none of the descriptors that this one was started with, but standard input,
/// output and error, those of the service manager (see stored_descriptors.h), and `kept`.
using Split = std::function<bool(const std::function<void()>& leave)>;
void run_in_background(const std::function<void(const std::function<void()>& ready)>& serve,
                       std::vector<int> kept, const Split& split = {});

}  // namespace batchfs
