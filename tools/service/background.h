#pragma once
// A daemon that reports: the command returns when the daemon is ready, or fails with its error.

#include <functional>
#include <vector>

#include "tools/service/start_report.h"

namespace batchfs {

/// Calls `run` in a separate process, which outlives this one and ends with `run`. `run` calls the
/// report's functions. Returns when the process has reported that it is ready; throws the Error
/// with which `run` ended before that. Precondition: this process has one thread.
///
/// The process closes the descriptors that this one was started with, except standard input, output
/// and error, those of the service manager (see stored_descriptors.h), and `kept`.
void run_in_background(const std::function<void(StartReport&)>& run, std::vector<int> kept);

}  // namespace batchfs
