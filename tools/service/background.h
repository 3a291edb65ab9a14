#pragma once
// A daemon that reports: the command returns when the daemon is ready, or fails with its error.

#include <functional>
#include <vector>

#include "tools/service/start_report.h"

namespace batchfs {

/// Calls `run` in a process of its own, which outlives this one and ends with it. `run` calls the
/// report's functions. Returns when the process has reported that it is ready; throws the Error
/// that `run` ended with before that. Precondition: this process has one thread.
///
/// The process keeps none of the descriptors that this one was started with, but standard input,
/// output and error, those of the service manager (see stored_descriptors.h), and `kept`.
void run_in_background(const std::function<void(StartReport&)>& run, std::vector<int> kept);

}  // namespace batchfs
